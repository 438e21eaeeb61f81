/** Owns: where else a file system shows a path. What a sandbox then hides: test/worker/room.test.ts. */
import { expect, test } from "vitest";
import { mountsIn, seenAgain } from "../../../../../workers/connection/room/mounts.ts";

const TABLE = `22 27 0:21 / /proc rw - proc proc rw
27 1 8:32 / / rw,relatime - ext4 /dev/sdc rw
90 27 8:32 / /mnt/wslg/distro ro,relatime - ext4 /dev/sdc rw
91 27 8:32 /srv/a\\040b /mnt/some\\040where rw - ext4 /dev/sdc rw
30 27 0:40 /@home /home rw - btrfs /dev/sdb rw
31 27 0:40 / /mnt/top rw - btrfs /dev/sdb rw
32 27 9:1 / /data rw - ext4 /dev/sdd rw
33 27 9:2 / /data rw - ext4 /dev/sde rw
34 27 9:1 / /other rw - ext4 /dev/sdd rw
broken`;

test.each([
  ["/root/.ssh", ["/mnt/wslg/distro/root/.ssh"]],
  ["/mnt/wslg/distro/root/.ssh", ["/root/.ssh"]],
  ["/", ["/mnt/wslg/distro"]],
  ["/home/me/.ssh", ["/mnt/top/@home/me/.ssh"]],
  ["/mnt/top/@home/me", ["/home/me"]],
  ["/mnt/top/@home2/me", []],
  ["/srv/a b/key", ["/mnt/wslg/distro/srv/a b/key", "/mnt/some where/key"]],
  ["/srv/a bc", ["/mnt/wslg/distro/srv/a bc"]],
  // The second mount at one place covers the first.
  ["/data/key", []],
  ["/other/key", ["/data/key"]],
  ["/proc/1", []],
])("%s -> %j", (path, expected) => {
  expect(seenAgain(path, mountsIn(TABLE))).toEqual(expected);
});

test("no table, or no file system twice -> nothing to look for", () => {
  expect(mountsIn("")).toEqual([]);
  expect(mountsIn(TABLE.split("\n").slice(0, 2).join("\n"))).toEqual([]);
});
