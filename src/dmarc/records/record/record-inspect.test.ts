import { expect, test } from "bun:test";
import { inspectRecord } from "./record.ts";

test("a record is shown with its tags as written, in order, and what is wrong with it", () => {
  const inspection = inspectRecord("v=DMARC1; P=Reject; pct=50; rua=mailto:a@example.com; p=none");
  expect(Object.keys(inspection)).toEqual(["input", "valid", "tags", "warnings"]);
  expect(inspection).toMatchObject({
    input: "v=DMARC1; P=Reject; pct=50; rua=mailto:a@example.com; p=none",
    valid: true,
  });
  expect(Object.entries(inspection.tags)).toEqual([
    ["v", "DMARC1"],
    ["p", "Reject"],
    ["pct", "50"],
    ["rua", "mailto:a@example.com"],
  ]);
  expect(inspection.warnings.map(({ code }) => code)).toEqual(["historic_tag", "duplicate_tag"]);
});

test("a sound record has no warning", () => {
  expect(inspectRecord("v=DMARC1; p=none; rua=mailto:a@example.com").warnings).toEqual([]);
});

test("what is no record is shown with the reason", () => {
  expect(inspectRecord("hello")).toEqual({
    input: "hello",
    valid: false,
    tags: {},
    warnings: [{ code: "version_missing", message: expect.any(String) }],
  });
});

test("a tag with the name of something every object has is a tag like any other", () => {
  expect(Object.keys(inspectRecord("v=DMARC1; constructor=x; toString=y").tags)).toEqual([
    "v",
    "constructor",
    "tostring",
  ]);
});
