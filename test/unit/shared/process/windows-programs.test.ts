import { describe, expect, test } from "vitest";
import { commandShell, systemProgram } from "../../../../src/shared/process/strays.ts";

describe("systemProgram", () => {
  test.each([
    [{ SystemRoot: "C:\\Windows" }, "C:\\Windows\\System32\\taskkill.exe"],
    [{ SYSTEMROOT: "D:\\WINNT\\" }, "D:\\WINNT\\System32\\taskkill.exe"],
    [{ windir: "E:/Windows" }, "E:/Windows\\System32\\taskkill.exe"],
    [{}, "C:\\Windows\\System32\\taskkill.exe"],
    [{ SystemRoot: "" }, "C:\\Windows\\System32\\taskkill.exe"],
    [{ SystemRoot: "windows" }, "C:\\Windows\\System32\\taskkill.exe"],
    [{ SystemRoot: ".", windir: "C:\\W" }, "C:\\W\\System32\\taskkill.exe"],
  ])("%j -> %s", (env, expected) => {
    expect(systemProgram("taskkill.exe", env)).toBe(expected);
  });
});

describe("commandShell", () => {
  test.each([
    [{ ComSpec: "C:\\Windows\\system32\\cmd.exe" }, "C:\\Windows\\system32\\cmd.exe"],
    [{ COMSPEC: "D:\\tcc\\tcc.exe" }, "D:\\tcc\\tcc.exe"],
    [{ ComSpec: "cmd.exe", SystemRoot: "C:\\Windows" }, "C:\\Windows\\System32\\cmd.exe"],
    [{ ComSpec: ".\\cmd.exe" }, "C:\\Windows\\System32\\cmd.exe"],
    [{}, "C:\\Windows\\System32\\cmd.exe"],
  ])("%j -> %s", (env, expected) => {
    expect(commandShell(env)).toBe(expected);
  });
});
