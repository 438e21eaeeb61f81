/** Owns: what is made right in the answers of real authorization servers, in tables. */
import { describe, expect, test } from "vitest";
import {
  isHtml,
  mendAnswer,
  readForm,
  readObject,
  statusFor,
  withClientFields,
  withNumbers,
  withoutEmpty,
  withPlainError,
  withTokenFields,
} from "../../../../../../workers/connection/auth/requests/mend.ts";

type Fields = Record<string, unknown>;
type Row = [name: string, given: Fields, mended: Fields];

const mends = (rows: Row[], mend: (fields: Fields) => Fields): void => {
  test.each(rows)("%s", (_name, given, mended) => {
    expect(mend(given)).toEqual(mended);
  });
};

describe("empty fields", () => {
  mends(
    [
      ["null -> dropped", { a: 1, scope: null, expires_in: null }, { a: 1 }],
      ["an empty text -> dropped", { refresh_token: "", scope: "" }, {}],
      ["0, false and an empty list -> kept", { a: 0, b: false, c: [] }, { a: 0, b: false, c: [] }],
    ],
    withoutEmpty,
  );
});

describe("numbers", () => {
  mends(
    [
      ["a text -> a number", { expires_in: "3600" }, { expires_in: 3600 }],
      ["a fraction -> kept", { expires_in: 3599.5 }, { expires_in: 3599.5 }],
      ["0 -> kept", { client_secret_expires_at: 0 }, { client_secret_expires_at: 0 }],
      ["a text without a number -> dropped", { expires_in: "soon" }, {}],
      ["blank -> dropped", { expires_in: " " }, {}],
      ["negative -> dropped", { expires_in: -1 }, {}],
      ["infinite -> dropped", { expires_in: "Infinity" }, {}],
      [
        "true, a list, an object -> dropped",
        { expires_in: true, client_id_issued_at: [], client_secret_expires_at: {} },
        {},
      ],
      ["other fields -> as they are", { scope: "1", access_token: "2" }, { scope: "1", access_token: "2" }],
    ],
    withNumbers,
  );
});

describe("tokens", () => {
  mends(
    [
      ["no type -> bearer", { access_token: "a" }, { access_token: "a", token_type: "bearer" }],
      [
        "a type -> kept",
        { access_token: "a", token_type: "DPoP" },
        { access_token: "a", token_type: "DPoP" },
      ],
      [
        "the type user -> bearer",
        { access_token: "a", token_type: "user" },
        { access_token: "a", token_type: "bearer" },
      ],
      [
        "a list of scopes -> a text",
        { access_token: "a", token_type: "Bearer", scope: ["x", "y", 1] },
        { access_token: "a", token_type: "Bearer", scope: "x y" },
      ],
      [
        "an empty list of scopes -> dropped",
        { access_token: "a", token_type: "Bearer", scope: [] },
        { access_token: "a", token_type: "Bearer" },
      ],
      ["no access token -> as it is", { id_token: "x", scope: ["a"] }, { id_token: "x", scope: ["a"] }],
    ],
    withTokenFields,
  );
});

describe("registrations", () => {
  mends(
    [
      [
        "a secret without an end -> the end 0",
        { client_id: "c", client_secret: "s" },
        { client_id: "c", client_secret: "s", client_secret_expires_at: 0 },
      ],
      [
        "a secret with an end -> kept",
        { client_id: "c", client_secret: "s", client_secret_expires_at: 9 },
        { client_id: "c", client_secret: "s", client_secret_expires_at: 9 },
      ],
      ["no secret -> no end", { client_id: "c" }, { client_id: "c" }],
      ["a number as the id -> a text", { client_id: 42 }, { client_id: "42" }],
    ],
    withClientFields,
  );
});

describe("errors", () => {
  mends(
    [
      [
        "an object -> its code and its message",
        { error: { code: "invalid_client", message: "No." } },
        { error: "invalid_client", error_description: "No." },
      ],
      ["an object with a type -> the type", { error: { type: "invalid_grant" } }, { error: "invalid_grant" }],
      [
        "a description beside it -> kept",
        { error: { code: "x", message: "a" }, error_description: "b" },
        { error: "x", error_description: "b" },
      ],
      ["an object without words -> as it is", { error: { code: 7 } }, { error: { code: 7 } }],
      ["a text -> as it is", { error: "invalid_grant" }, { error: "invalid_grant" }],
    ],
    withPlainError,
  );
});

describe("the status", () => {
  const ROWS: [name: string, status: number, fields: Fields, isPost: boolean, mended: number][] = [
    ["an error under 200 -> 400", 200, { error: "invalid_grant" }, true, 400],
    ["an error under 200 for metadata -> 400", 200, { error: "not_found" }, false, 400],
    ["an error beside a token -> 200", 200, { error: "none", access_token: "a" }, true, 200],
    ["an error beside an issuer -> 200", 200, { error: "none", issuer: "https://a" }, false, 200],
    ["a registration under 200 -> 201", 200, { client_id: "c" }, true, 201],
    ["a registration under 201 -> 201", 201, { client_id: "c" }, true, 201],
    ["tokens under 201 -> 200", 201, { access_token: "a", client_id: "c" }, true, 200],
    ["metadata -> as they are", 203, { client_id: "c" }, false, 203],
    ["an error under 401 -> 401", 401, { error: "invalid_client" }, true, 401],
    ["tokens under 500 -> 500", 500, { access_token: "a" }, true, 500],
    ["neither -> as it is", 202, {}, true, 202],
  ];
  test.each(ROWS)("%s", (_name, status, fields, isPost, mended) => {
    expect(statusFor(status, fields, isPost)).toBe(mended);
  });
});

test.each([
  ["{}", {}],
  ['\uFEFF {"a":1}', { a: 1 }],
  ["[]", undefined],
  ["null", undefined],
  ['"text"', undefined],
  ["", undefined],
  ["<html>", undefined],
])("the text %j -> the object %j", (text, object) => {
  expect(readObject(text)).toEqual(object);
});

test.each([
  [3_999, true],
  [4_000, false],
  [60_000, false],
])("an object with a list of %i levels -> read: %s", (levels, read) => {
  const text = `{"access_token":"a","x":${"[".repeat(levels)}${"]".repeat(levels)}}`;
  expect(readObject(text) !== undefined).toBe(read);
  expect(mendAnswer({ status: 200, contentType: "text/plain", text }, true).contentType).toBe(
    read ? "application/json" : "text/plain",
  );
});

test.each([
  [
    "access_token=gho_1&scope=repo%2Cgist&token_type=bearer",
    { access_token: "gho_1", scope: "repo,gist", token_type: "bearer" },
  ],
  [
    "error=bad_verification_code&error_description=The+code",
    { error: "bad_verification_code", error_description: "The code" },
  ],
  ["\uFEFFaccess_token=a\n", { access_token: "a" }],
  ["hello=world", undefined],
  ["access_token=<script>", undefined],
  ["the access_token=1", undefined],
])("the text %j -> the form %j", (text, form) => {
  expect(readForm(text)).toEqual(form);
});

test.each([
  ["text/html; charset=utf-8", "", true],
  ["application/xhtml+xml", "", true],
  [undefined, "\n<!DOCTYPE html><p>", true],
  ["application/json", "\uFEFF<html lang=en>", true],
  [undefined, "<xml>", false],
  ["text/plain", "an error", false],
])("the type %s with %j -> a web page: %s", (contentType, text, page) => {
  expect(isHtml({ contentType, text })).toBe(page);
});

describe("a whole answer", () => {
  const mended = (
    text: string,
    { status = 200, contentType = undefined as string | undefined, isPost = true } = {},
  ) => {
    const answer = mendAnswer({ status, contentType, text }, isPost);
    return { ...answer, fields: readObject(answer.text) };
  };

  test.each([
    undefined,
    "text/plain",
    "text/html",
    "application/octet-stream",
    "application/json; charset=utf-8",
  ])("JSON with the type %s -> application/json", (contentType) => {
    expect(mended('{"access_token":"a"}', { contentType })).toMatchObject({
      contentType: "application/json",
      fields: { access_token: "a", token_type: "bearer" },
    });
  });

  test("a form with tokens -> the same as JSON, with numbers", () => {
    const text = "access_token=a&expires_in=28800&scope=&token_type=bearer";
    expect(mended(text, { contentType: "application/x-www-form-urlencoded" })).toMatchObject({
      status: 200,
      contentType: "application/json",
      fields: { access_token: "a", expires_in: 28_800, token_type: "bearer" },
    });
  });

  test("a form with an error under 200 -> 400", () => {
    expect(mended("error=bad_verification_code")).toMatchObject({
      status: 400,
      fields: { error: "bad_verification_code" },
    });
  });

  test("a form in the place of metadata -> as it is", () => {
    expect(mended("error=x", { isPost: false })).toMatchObject({ status: 200, text: "error=x" });
  });

  test("metadata -> only null and empty fields are mended", () => {
    const text =
      '{"issuer":"https://a","scopes_supported":null,"client_id":7,"id_token":"x","expires_in":"1"}';
    expect(mended(text, { isPost: false }).fields).toEqual({
      issuer: "https://a",
      client_id: 7,
      id_token: "x",
      expires_in: "1",
    });
  });

  test.each([
    [204, true, 200],
    [202, true, 200],
    [500, true, 500],
    [204, false, 204],
  ])("no content under %i, a message was sent: %s -> %i", (status, isPost, expected) => {
    expect(mended(" ", { status, isPost }).status).toBe(expected);
  });

  test("a key __proto__ -> a key like any other", () => {
    const { fields, text } = mended('{"access_token":"a","__proto__":{"token_type":"mac"}}');
    expect(text).toContain("__proto__");
    expect(fields?.token_type).toBe("bearer");
  });
});
