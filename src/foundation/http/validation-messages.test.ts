import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { AppError } from "../base/errors.ts";
import { createApps } from "../../testing/app.ts";
import { checked } from "./body.ts";

const start = createApps();

const issuesOf = (schema: z.ZodType, data: unknown, code: Parameters<typeof checked>[2] = "Invalid request body") => {
  try {
    checked(schema, data, code);
  } catch (error) {
    if (error instanceof AppError) return error.details.issues;
    throw error;
  }
  throw new Error("nothing was wrong");
};

describe("the message for a schema without messages of its own", () => {
  test.each<[z.ZodType, unknown, string]>([
    [z.string(), 5, "Must be a string"],
    [z.array(z.string()), null, "Must be an array"],
    [z.boolean(), "true", "Must be true or false"],
    [z.object({}), [], "Must be an object"],
    [z.number(), "5", "Must be a number"],
    [z.int(), "5", "Must be an integer"],
    [z.int(), 1.5, "Must be an integer"],
    [z.int().min(1).max(9), "5", "Must be an integer from 1 to 9"],
    [z.int().min(1), "5", "Must be an integer"],
    [z.int().max(9), "5", "Must be an integer"],
    [z.number().min(0).max(1), "5", "Must be a number from 0 to 1"],
    [z.string(), ["a"], "Must be a string"],
    [z.number().negative(), 0, "Must be less than 0"],
    [z.string().max(1), "ab", "Must have at most 1 character"],
    [z.number().multipleOf(5), 7, "Must be a multiple of 5"],
    [z.int().max(9), 10, "Must be at most 9"],
    [z.number().positive(), 0, "Must be greater than 0"],
    [z.enum(["a", "b", "c"]), "d", "Must be one of: a, b, c"],
    [z.literal("day"), "hour", "Must be day"],
    [z.string().min(1), "", "Must have at least 1 character"],
    [z.array(z.string()).max(2), ["a", "b", "c"], "Must have at most 2 entries"],
    [z.iso.datetime(), "yesterday", "Must be a time such as 2026-01-02T03:04:05Z"],
    [z.iso.date(), "yesterday", "Must be a date such as 2026-01-02"],
    [z.string().regex(/^a$/), "b", "Invalid format"],
    [z.union([z.string(), z.array(z.string())]), 5, "Invalid value"],
    [z.string().refine(() => false), "b", "Invalid value"],
  ])("%#", (schema, value, message) => {
    expect(issuesOf(z.strictObject({ field: schema }), { field: value })).toEqual([{ path: "field", message }]);
  });

  test("a field or a choice is missing", () => {
    const schema = z.strictObject({ field: z.string(), choice: z.enum(["a", "b"]) });
    expect(issuesOf(schema, {})).toEqual([
      { path: "field", message: "Required" },
      { path: "choice", message: "Required" },
    ]);
  });

  test("a query parameter is repeated", () => {
    const issues = issuesOf(z.strictObject({ status: z.enum(["a", "b"]) }), { status: ["a", "b"] }, "Invalid query");
    expect(issues).toEqual([{ path: "status", message: "Must not be repeated" }]);
  });
});

test("a message of the schema's own is kept", () => {
  const schema = z.strictObject({
    type: z.string("A name is needed"),
    size: z.string().min(3, "Too short a name"),
    rule: z.string().refine(() => false, "No such name"),
    own: z.string().transform((text, context) => {
      context.addIssue({ code: "custom", message: "Not this one", input: text });
      return z.NEVER;
    }),
  });
  expect(issuesOf(schema, { type: 1, size: "a", rule: "a", own: "a" })).toEqual([
    { path: "type", message: "A name is needed" },
    { path: "size", message: "Too short a name" },
    { path: "rule", message: "No such name" },
    { path: "own", message: "Not this one" },
  ]);
});

describe("no route answers in the validator's words", () => {
  const RAW = /Invalid (?:input|option|string|ISO)|Too (?:big|small)|expected|received/u;

  test.each(["domain", "label", "webhook_url", "recipients"])("enrolment with a wrong %s", async (field) => {
    const app = start({ settings: { REPORT_HOST: "reports.example.net" } });
    const key = app.newKey();
    for (const value of [5, true, {}, ...(field === "recipients" ? [null, [5], [null]] : [[]])]) {
      const body = { domain: "example.com", [field]: value };
      const answer = await app.request("POST", "/v1/dmarc/domains", { key, body });
      expect(answer).toMatchObject({ status: 400, body: { error: "Invalid request body" } });
      expect(JSON.stringify(answer.body.issues)).not.toMatch(RAW);
    }
  });

  test.each(["outcome", "status", "via", "reason", "domain_id", "created_after"])(
    "ingestions with a wrong %s",
    async (name) => {
      const app = start();
      const key = app.newKey();
      for (const query of [`${name}=`, `${name}=a&${name}=b`]) {
        const answer = await app.request("GET", `/v1/dmarc/ingestions?${query}`, { key });
        expect(answer).toMatchObject({ status: 400, body: { error: "Invalid query" } });
        expect(JSON.stringify(answer.body.issues)).not.toMatch(RAW);
      }
    },
  );
});
