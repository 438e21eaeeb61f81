/** Owns: what an address says by itself, in tables. */
import { describe, expect, test } from "vitest";
import {
  addressProblem,
  hostOf,
  isPrivateIp,
  namesPrivateHost,
  shownAddress,
} from "../../../../../../workers/connection/auth/requests/addresses.ts";

const PRIVATE = [
  ...["0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255"],
  ...["127.0.0.1", "127.9.9.9", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8"],
  ...["192.168.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"],
  ...[
    "::",
    "::1",
    "::7f00:1",
    "fc00::1",
    "fdff::1",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "fec0::1",
    "ff02::1",
  ],
  ...["::ffff:10.0.0.1", "::ffff:a00:1", "::ffff:0:10.0.0.1", "64:ff9b::192.168.0.1", "64:ff9b::c0a8:1"],
  ...["64:ff9b:1::1", "2002:c0a8:1::1", "2002:7f00:1::"],
  ...["not an address", ""],
];

const PUBLIC = [
  ...["1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "128.0.0.1", "169.253.1.1"],
  ...[
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "192.167.255.255",
    "192.169.0.0",
    "198.18.0.1",
    "223.255.255.255",
  ],
  ...["2606:4700::1111", "2001:4860:4860::8888", "::ffff:8.8.8.8", "::ffff:808:808", "64:ff9b::8.8.8.8"],
  ...["2002:808:808::1", "fbff::1", "fe00::1"],
];

test.each(PRIVATE)("%s -> private", (ip) => {
  expect(isPrivateIp(ip)).toBe(true);
});

test.each(PUBLIC)("%s -> public", (ip) => {
  expect(isPrivateIp(ip)).toBe(false);
});

describe("a host in a URL", () => {
  const HOSTS: [url: string, host: string, isPrivate: boolean][] = [
    ["https://2130706433/", "127.0.0.1", true],
    ["https://0x7f.1/", "127.0.0.1", true],
    ["https://0300.0250.1/", "192.168.0.1", true],
    ["https://10.0.0.1./", "10.0.0.1", true],
    ["https://[::ffff:127.0.0.1]/", "::ffff:7f00:1", true],
    ["https://[fd00::1]:8443/", "fd00::1", true],
    ["https://LocalHost./", "localhost", true],
    ["https://mcp.localhost/", "mcp.localhost", true],
    ["https://localhost.example.com/", "localhost.example.com", false],
    ["https://mcp.example.com./", "mcp.example.com", false],
    ["https://8.8.8.8/", "8.8.8.8", false],
    ["https://[2606:4700::1111]/", "2606:4700::1111", false],
  ];
  test.each(HOSTS)("%s -> %s, private: %s", (url, host, isPrivate) => {
    expect(hostOf(new URL(url))).toBe(host);
    expect(namesPrivateHost(new URL(url))).toBe(isPrivate);
  });
});

describe("the protocol", () => {
  const ROWS: [url: string, kind: string | undefined][] = [
    ["https://as.example.com/token", undefined],
    ["https://10.0.0.1/token", undefined],
    ["http://127.0.0.1:8080/token", undefined],
    ["http://127.8.0.1/token", undefined],
    ["http://localhost/token", undefined],
    ["http://localhost./token", undefined],
    ["http://[::1]:3000/token", undefined],
    ["http://as.example.com/token", "not-https"],
    ["http://192.168.0.1/token", "not-https"],
    ["http://localhost.example.com/token", "not-https"],
    ["http://127.0.0.1.example.com/token", "not-https"],
    ["http://[::ffff:127.0.0.1]/token", "not-https"],
    ["ftp://as.example.com/token", "not-https"],
    ["javascript:alert(1)", "not-https"],
    ["file:///etc/passwd", "not-https"],
    ["https://me@as.example.com/token", "bad-answer"],
    ["https://:secret@as.example.com/token", "bad-answer"],
  ];
  test.each(ROWS)("%s -> %s", (url, kind) => {
    expect(addressProblem(new URL(url))?.kind).toBe(kind);
  });
});

test.each([
  ["javascript:alert(1)", "javascript:alert(1)"],
  ["file:///etc/passwd?a", "file:/etc/passwd"],
  ["vscode://host/path#b", "vscode://host/path"],
])("%s, which has no origin -> shown as %s", (address, shown) => {
  expect(shownAddress(new URL(address))).toBe(shown);
});

test("an address with credentials, a query and a fragment -> none of these is shown", () => {
  expect(shownAddress(new URL("https://me:secret@as.example.com:444/a/b?code=1#c"))).toBe(
    "https://as.example.com:444/a/b",
  );
});
