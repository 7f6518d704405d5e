import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { AppError } from "../base/errors.ts";
import { createApps } from "../testing/app.ts";
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

describe("a schema without words of its own says in a plain sentence", () => {
  test.each<[z.ZodType, unknown, string]>([
    [z.string(), 5, "A text is needed"],
    [z.array(z.string()), null, "A list is needed"],
    [z.boolean(), "true", "true or false is needed"],
    [z.object({}), [], "A JSON object is needed"],
    [z.number(), "5", "A number is needed"],
    [z.int(), "5", "A whole number is needed"],
    [z.int(), 1.5, "A whole number is needed"],
    [z.int().min(1).max(9), "5", "A whole number from 1 to 9 is needed"],
    [z.int().max(9), 10, "At most 9 is needed"],
    [z.number().positive(), 0, "More than 0 is needed"],
    [z.enum(["a", "b", "c"]), "d", "One of these is needed: a, b, c"],
    [z.literal("day"), "hour", "day is needed"],
    [z.string().min(1), "", "At least 1 character"],
    [z.array(z.string()).max(2), ["a", "b", "c"], "At most 2 entries"],
    [z.iso.datetime(), "yesterday", "A time is needed, as 2026-01-02T03:04:05Z"],
    [z.iso.date(), "yesterday", "A day is needed, as 2026-01-02"],
    [z.string().regex(/^a$/), "b", "It does not have the form that is needed"],
    [z.union([z.string(), z.array(z.string())]), 5, "This value is not possible here"],
    [z.string().refine(() => false), "b", "This value is not possible here"],
  ])("%#", (schema, value, message) => {
    expect(issuesOf(z.strictObject({ field: schema }), { field: value })).toEqual([{ path: "field", message }]);
  });

  test("that a field or a choice is missing", () => {
    const schema = z.strictObject({ field: z.string(), choice: z.enum(["a", "b"]) });
    expect(issuesOf(schema, {})).toEqual([
      { path: "field", message: "Required" },
      { path: "choice", message: "Required" },
    ]);
  });

  test("that a parameter of a query is given twice", () => {
    const issues = issuesOf(z.strictObject({ status: z.enum(["a", "b"]) }), { status: ["a", "b"] }, "Invalid query");
    expect(issues).toEqual([{ path: "status", message: "It may be given once only" }]);
  });
});

test("a schema's own words stay", () => {
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
