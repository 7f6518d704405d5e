import { describe, expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";
import { JSON_BODY_BYTES_MAX, readBytes } from "./body.ts";

const PATH = "/v1/email-verifications";
const start = createApps();

const post = (body: unknown, headers: Record<string, string> = {}) => {
  const app = start();
  return app.request("POST", PATH, { key: app.newKey(), body, headers });
};

/** A JSON body of exactly `bytes`, padded with white space. */
const padded = (bytes: number): string => '{"email":"a@any.example"}'.padEnd(bytes);

const streamOf = (...chunks: string[]): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(Buffer.from(chunk));
      controller.close();
    },
  });

describe("a body that is not JSON is a 400 of its own", () => {
  test.each([
    ["nothing", ""],
    ["white space", " \r\n"],
    ["half an object", '{"email":"a@any.example"'],
    ["something behind the object", '{"email":"a@any.example"} x'],
    ["a form", "email=a%40any.example"],
    ["single quotes", "{'email':'a@any.example'}"],
    ["a comment", '{"email":"a@any.example"/* so */}'],
    ["a raw control character in a string", '{"email":"a\u0001@any.example"}'],
    ["NaN", "NaN"],
    ["nesting without end", "[".repeat(10_000)],
    ["invalid UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])],
    ["invalid UTF-8 in a string", Buffer.from('{"email":"a\xff@any.example"}', "latin1")],
    ["UTF-8 cut short", Buffer.from('{"email":"ä', "utf8").subarray(0, -1)],
    ["UTF-16", Buffer.from('{"email":"a@any.example"}', "utf16le")],
  ])("%s", async (_, body) => {
    const answer = await post(body);
    expect(answer).toMatchObject({ status: 400, body: { error: "Request body must be valid JSON" } });
  });
});

describe("JSON that is no order is Invalid request body, and says what is wrong", () => {
  test.each([
    ["null", "null", [""]],
    ["an array", '[{"email":"a@any.example"}]', [""]],
    ["a number", "5", [""]],
    ["a string", '"a@any.example"', [""]],
    ["no email", "{}", ["email"]],
    ["email null", { email: null }, ["email"]],
    ["email a number", { email: 5 }, ["email"]],
    ["email an array", { email: ["a@any.example"] }, ["email"]],
    ["email an object", { email: {} }, ["email"]],
    ["email empty", { email: "" }, ["email"]],
    ["email white space only", { email: " \t\u00a0\u3000\ufeff\n" }, ["email"]],
    ["email of 321 characters", { email: "a".repeat(321) }, ["email"]],
    ["email of 321 astral characters", { email: "😀".repeat(321) }, ["email"]],
    ["an unknown field", { email: "a@any.example", mail: 1 }, ["mail"]],
    ["two unknown fields", { email: "a@any.example", x: 1, y: 2 }, ["x", "y"]],
    ["a field in the wrong case", { email: "a@any.example", Source: "x" }, ["Source"]],
    ["__proto__", '{"email":"a@any.example","__proto__":{"email":"x"}}', ["__proto__"]],
    ["constructor", { email: "a@any.example", constructor: {} }, ["constructor"]],
    ["email inherited only", '{"__proto__":{"email":"a@any.example"}}', ["__proto__", "email"]],
    ["source null", { email: "a@any.example", source: null }, ["source"]],
    ["source empty", { email: "a@any.example", source: "" }, ["source"]],
    ["source a number", { email: "a@any.example", source: 1 }, ["source"]],
    ["source of 201 characters", { email: "a@any.example", source: "😀".repeat(201) }, ["source"]],
    ["everything at once", { source: 1, x: 2 }, ["email", "source", "x"]],
  ])("%s", async (_, body, paths) => {
    const answer = await post(body);
    expect(answer).toMatchObject({ status: 400, body: { error: "Invalid request body" } });
    const issues = answer.body.issues as Array<{ path: string; message: string }>;
    expect(issues.map(({ path }) => path).toSorted()).toEqual([...paths].toSorted());
    for (const { message } of issues) expect(message).not.toBe("");
  });
});

describe("what is taken", () => {
  test.each([
    ["email of 320 characters", { email: "a".repeat(320) }, "a".repeat(320)],
    ["email of 320 astral characters", { email: "😀".repeat(320) }, "😀".repeat(320)],
    ["320 characters and white space around", { email: ` ${"a".repeat(320)}\n` }, "a".repeat(320)],
    ["white space around the address", { email: " \u00a0a@any.example\t" }, "a@any.example"],
    ["source of 200 astral characters", { email: "a@any.example", source: "😀".repeat(200) }, "a@any.example"],
    ["a field given twice: the last counts", '{"email":"b@any.example","email":"a@any.example"}', "a@any.example"],
    ["a byte order mark", '\ufeff{"email":"a@any.example"}', "a@any.example"],
    ["escapes", '{"\\u0065mail":"\\u0061@any.example"}', "a@any.example"],
    ["a chunked body without length", streamOf('{"email":', '"a@any.', 'example"}'), "a@any.example"],
    ["a character split between chunks", streamOf('{"email":"a@any.example"', " }"), "a@any.example"],
  ])("%s", async (_, body, email) => {
    expect(await post(body)).toMatchObject({ status: 200, body: { result: { email } } });
  });

  test.each([undefined, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "nonsense", ""])(
    "JSON with the content type %p",
    async (type) => {
      const answer = await post(Buffer.from(padded(30)), type === undefined ? {} : { "content-type": type });
      expect(answer.status).toBe(200);
    },
  );

  test("the identity coding, in any case", async () => {
    expect((await post(padded(30), { "content-encoding": "Identity" })).status).toBe(200);
  });
});

describe("the size of a body", () => {
  test("one mebibyte is taken, one byte more is 413", async () => {
    expect((await post(padded(JSON_BODY_BYTES_MAX - 1))).status).toBe(200);
    expect((await post(padded(JSON_BODY_BYTES_MAX))).status).toBe(200);
    expect(await post(padded(JSON_BODY_BYTES_MAX + 1))).toMatchObject({
      status: 413,
      body: { error: "payload_too_large", message: "The request body exceeds 1,048,576 bytes." },
    });
  });

  test("holds for a body without a declared length, which is not read to its end", async () => {
    const chunk = Buffer.alloc(64 * 1024, 0x20);
    let sent = 0;
    const endless = new ReadableStream({
      pull(controller) {
        sent += chunk.byteLength;
        controller.enqueue(chunk);
      },
    });
    expect((await post(endless)).status).toBe(413);
    expect(sent).toBeLessThan(2 * JSON_BODY_BYTES_MAX);
  });

  test("a declared length beyond it is refused before a byte is read", async () => {
    const declare = (bytes: number) => post(padded(30), { "content-length": String(bytes) });
    expect((await declare(JSON_BODY_BYTES_MAX + 1)).status).toBe(413);
    expect((await declare(JSON_BODY_BYTES_MAX)).status).toBe(200);
  });

  test.each(["gzip", "deflate", "br", "zstd", "identity, gzip"])("a body in the coding %s is 415", async (coding) => {
    expect(await post(Bun.gzipSync(padded(30)), { "content-encoding": coding })).toMatchObject({
      status: 415,
      body: { error: "unsupported_media_type" },
    });
  });
});

test("a body with more than anybody means to send is not parsed, and says why", async () => {
  const { status, body } = await post("[".repeat(500_000));
  expect({ status, body }).toMatchObject({
    status: 400,
    body: { error: "Invalid request body", message: "The body has more than 10,000 objects and arrays." },
  });
});

test("a body with thousands of misfits is answered with twenty, their names cut", async () => {
  const keys = Array.from({ length: 10_000 }, (_, n) => [`${n}${"x".repeat(n === 0 ? 500 : 0)}`, 1]);
  const { status, body } = await post(Object.fromEntries(keys));
  const { issues } = body as { issues: Array<{ path: string }> };
  expect([status, issues.length]).toEqual([400, 20]);
  expect(issues.every(({ path }) => path.length <= 100)).toBe(true);
});

test("a body outside the service is read without a deadline", async () => {
  const request = new Request("http://localhost/", { method: "POST", body: "abc" });
  expect(Buffer.from(await readBytes(request, 3)).toString()).toBe("abc");
});

test.each([undefined, "0", "7", "11", "100"])(
  "the pieces of a body are joined, whatever length it declares (%s)",
  async (declared) => {
    const pieces = ["a", "bc", "", "def", "ghijk"];
    const body = new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(Buffer.from(piece));
        controller.close();
      },
    });
    const headers = new Headers(declared === undefined ? [] : [["content-length", declared]]);
    const request = new Request("http://localhost/", { method: "POST", body, headers });
    const bytes = await readBytes(request, 100, (stream) => stream);
    expect(Buffer.from(bytes).toString()).toBe("abcdefghijk");
  },
);
