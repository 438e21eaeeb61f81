/**
 * Owns: one verified copy of the real Pi under `node_modules/.cache/pi-host/<version>/`.
 * Must not: install it as a dependency, change package.json, or hand out a copy it has not verified.
 * Called by: pi-process.ts before every start of Pi; a global setup of the runner may call it first.
 *
 * Pi's tarball carries a bundled CLI, so no install is needed. The bundle lacks two packages that Pi requires when an
 * extension loads or `codemode` runs; both lie in `node_modules/` beside the unpacked package.
 */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { packInto, unpackAs, verifyIntegrity } from "./npm-pack.ts";
import { removeFolder } from "./temp-folder.ts";

/** `npm view @earendil-works/pi-coding-agent@<version> dist.integrity` of each Pi that the tests can run. */
const VERSIONS: Readonly<Record<string, string>> = {
  "1.5.2": "sha512-mUWI04rqF1Vd/m1q+Ps1XeWsTXEVvRUnsmRa83I3Dzua0Tx5bYS93imeqtIfrXf7PkkaR6ERz+AuQhIJlom5yA==",
  "1.6.0": "sha512-zX1BVEsshx7A2MRuQ6jfr3RJGWw4Wn+vLq5ZfmlvS1RskhRmByaSZVXH/zcwRrWHO7qPgs98pNCbPOEti/t0fQ==",
};

/** The Pi that the tests run. `TEST_PI=1.6.0 npm test` runs them on another one of the list. */
export const PI_VERSION = process.env.TEST_PI ?? "1.5.2";

/** Of the packages whose types Pi's own types import. */
const TYPES_VERSION = "1.5.2";

/** The oldest Node that Pi starts on: [major, minor]. */
const OLDEST_NODE = [22, 19] as const;

interface Pin {
  spec: string;
  /** The output of `npm view <spec> dist.integrity`. */
  integrity: string;
  /** The package's folder, as path segments below the version folder. */
  place: readonly string[];
}

const PINS: readonly Pin[] = [
  {
    spec: `@earendil-works/pi-coding-agent@${PI_VERSION}`,
    integrity: VERSIONS[PI_VERSION] ?? `no Pi ${PI_VERSION} is known to test/support/pi-host.ts`,
    place: ["package"],
  },
  {
    spec: "jiti@2.7.0",
    integrity:
      "sha512-AC/7JofJvZGrrneWNaEnJeOLUx+JlGt7tNa0wZiRPT4MY1wmfKjt2+6O2p2uz2+skll8OZZmJMNqeke7kKbNgQ==",
    place: ["node_modules", "jiti"],
  },
  // Pi's `codemode` runs in this sandbox, which the bundle lacks as well.
  {
    spec: "quickjs-wasi@3.6.2",
    integrity:
      "sha512-FCqGtGOrMgzUiIrMNMA2YnsOxCNwo31dzqXvclXUC6xeT35NJLKXQJsvbeCTjvoFAwZgEAPg8U6+KAPDGXn8Mg==",
    place: ["node_modules", "quickjs-wasi"],
  },
  // Pi's types import the following packages. The running Pi cannot reach them.
  {
    spec: `@earendil-works/pi-agent-core@${TYPES_VERSION}`,
    integrity:
      "sha512-ie5mejS7mGfXt//9As7i3LfxVXdktZvF1JP4EQsUXTp4mU437h23MNGx7wXZ5VYs3YiG/Qnj3e7OZ2HC069OMw==",
    place: ["types", "@earendil-works", "pi-agent-core"],
  },
  {
    spec: `@earendil-works/pi-ai@${TYPES_VERSION}`,
    integrity:
      "sha512-2tWPSnV3qzfiDIY3aWluBag3vC++Vs+VsXt/UquSU5onPMohPih72FUhIhaqmDdMYubOgB3Byl9uF4Vk40JLvQ==",
    place: ["types", "@earendil-works", "pi-ai"],
  },
  {
    spec: "typebox@1.3.27",
    integrity:
      "sha512-zu+jc1pcy4UiNThxikUr36f0Rybk9PEeCg/NE6adeWr/SKsdNO4EzZHYRDlv2YCVAfj3Odq3dESSo/jNyoBXzA==",
    place: ["types", "typebox"],
  },
];

/** Text of the stamp file in a finished copy. A copy with another stamp comes from other pins and is replaced. */
const STAMP = PINS.map((pin) => `${pin.spec} ${pin.integrity}\n`).join("");

export interface PiHost {
  /** Absolute path of the script to run with Node. */
  cli: string;
  /** Absolute path of the unpacked `@earendil-works/pi-coding-agent`. */
  packageDir: string;
  /** Folder of the packages that Pi's types import, for a compiler's `paths`. */
  typesDir: string;
  version: string;
}

let pending: Promise<PiHost> | undefined;

/**
 * Fetches the real Pi on first use (about 20 MB) and caches it.
 * Several processes may call this at once: each prepares its own copy, and one rename wins.
 * Throws, and never skips, when Pi cannot be fetched or differs from its pin.
 */
export function ensurePi(): Promise<PiHost> {
  pending ??= provide(join(import.meta.dirname, "..", "..", "node_modules", ".cache", "pi-host", PI_VERSION));
  pending.catch(() => {
    pending = undefined;
  });
  return pending;
}

async function provide(target: string): Promise<PiHost> {
  requireNode(process.versions.node);
  if (!(await isComplete(target))) {
    const copy = await prepareCopy(dirname(target));
    await publish(copy, target);
  }
  const packageDir = join(target, "package");
  return {
    cli: join(packageDir, "dist", "bundle", "cli.js"),
    packageDir,
    typesDir: join(target, "types"),
    version: PI_VERSION,
  };
}

function requireNode(version: string): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_NODE;
  if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
    throw new Error(
      `Pi ${PI_VERSION} needs Node ${OLDEST_NODE.join(".")} or later and the tests run on ${version}: start them with an npm script, which uses node_modules/.bin/node`,
    );
  }
}

async function isComplete(dir: string): Promise<boolean> {
  const stamp = await readFile(join(dir, "stamp"), "utf8").catch(() => "");
  return stamp === STAMP && existsSync(join(dir, "package", "dist", "bundle", "cli.js"));
}

/** Fetches, verifies and unpacks into a new folder beside the target, so that a rename can publish it. */
async function prepareCopy(cacheDir: string): Promise<string> {
  await mkdir(cacheDir, { recursive: true });
  const copy = await mkdtemp(join(cacheDir, "new-"));
  try {
    // Packages are fetched one after the other, so that nothing still writes when a failure removes the folder.
    for (const pin of PINS) await place(pin, copy);
    await writeFile(join(copy, "stamp"), STAMP);
    return copy;
  } catch (cause) {
    await removeFolder(copy);
    throw new Error(
      `The end-to-end tests run the real Pi ${PI_VERSION}, which could not be fetched. They need npm, tar and a reachable package registry on their first run; run them again with one. Cause: ${String(cause)}`,
      { cause },
    );
  }
}

async function place(pin: Pin, copy: string): Promise<void> {
  const target = join(copy, ...pin.place);
  const destination = join(copy, `tarball-${pin.place.at(-1)}`);
  await mkdir(dirname(target), { recursive: true });
  await mkdir(destination);
  const tarball = await packInto({ spec: pin.spec, cwd: destination, destination });
  await verifyIntegrity(tarball, pin.integrity);
  await unpackAs(tarball, target);
  await removeFolder(destination);
}

/** Renames the copy to the target. If another process was first, its complete copy stays and this copy is removed. */
async function publish(copy: string, target: string): Promise<void> {
  try {
    await rename(copy, target);
    return;
  } catch (error) {
    if (!existsSync(target)) throw error;
  }
  if (await isComplete(target)) {
    await removeFolder(copy);
    return;
  }
  // The target is damaged or comes from other pins. The folder moves aside before its deletion, so that a Pi that still
  // runs from it does not lose some of its files.
  const old = `${copy}-old`;
  await rename(target, old).catch(() => undefined);
  await rename(copy, target).catch(() => removeFolder(copy));
  await removeFolder(old);
  if (!(await isComplete(target))) throw new Error(`${target} is not a complete copy of Pi: delete it`);
}
