// Adds one to `obtainedAt` of a stored sign-in, so many times, and prints each new number. With `hold`: takes the lock,
// prints "inside" and waits. With `take`: takes Pi's sign-in and prints its refresh token or "none". Arguments: agentDir,
// count or "hold" or "take", "file" or "system".
import { once } from "node:events";
import { openSignInStore } from "../../../../../../workers/connection/auth/store/store.ts";
import { LOCK, never, SERVER, SYSTEM_OF_TEST, signedIn, URL_OF_SERVER } from "./record-of-test.ts";

const [agentDir = "", count = "", place = "file"] = process.argv.slice(2);
const print = (line: string | number): boolean => process.stdout.write(`${line}\n`);
const fail = (text: string): never => {
  throw new Error(text);
};
const store = openSignInStore(
  {
    ...SYSTEM_OF_TEST,
    ...(place === "system" ? { tokenStore: () => "system" as const } : {}),
    ...{ agentDir, takesGiven: true, server: SERVER, url: URL_OF_SERVER, onNote: fail, warn: fail },
  },
  { lockTimes: LOCK },
);
if (count === "hold") {
  await store.locked(async () => {
    print("inside");
    await once(process.stdin, "data");
  }, never());
}
if (count === "take") print((await store.takeFromPi(never()))?.refresh_token ?? "none");
for (let i = 0; i < Number(count); i++) {
  await store.locked(async (held) => {
    const { record = signedIn({ obtainedAt: 0 }) } = held;
    const next = (record.obtainedAt ?? 0) + 1;
    // Two texts of different lengths, each whole only with its own number.
    await held.write({
      ...record,
      obtainedAt: next,
      refresh_token: `t${next}-`.repeat(1 + (next % 2) * 2_000),
    });
    print(next);
  }, never());
}
