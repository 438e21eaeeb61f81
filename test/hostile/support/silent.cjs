/** Preloaded into every thread of Pi: the file that the variable SILENT names lies on a file system that never answers. */
const files = require("node:fs/promises");
const { syncBuiltinESMExports } = require("node:module");

for (const name of ["access", "lstat", "open", "readFile", "realpath", "stat"]) {
  const answer = files[name];
  files[name] = (path, ...rest) =>
    path === process.env.SILENT ? new Promise(() => undefined) : answer(path, ...rest);
}
syncBuiltinESMExports();
