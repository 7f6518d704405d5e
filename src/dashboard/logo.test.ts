import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { logoResponse, readLogo } from "./logo.ts";

const SVG =
  '<?xml version="1.0"?>\n<!-- ours -->\n<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';
const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]);

const withFile = async <T>(content: string | Uint8Array, use: (path: string) => Promise<T>): Promise<T> => {
  const directory = mkdtempSync(join(tmpdir(), "postwarden-logo-"));
  try {
    writeFileSync(join(directory, "logo"), content);
    return await use(join(directory, "logo"));
  } finally {
    rmSync(directory, { recursive: true });
  }
};

test.each([
  ["an SVG with a declaration and a comment", SVG, "image/svg+xml", /^\/assets\/[0-9a-f]{12}-logo\.svg$/],
  ["a PNG", PNG, "image/png", /^\/assets\/[0-9a-f]{12}-logo\.png$/],
] as const)("reads %s, whatever its name", async (_, content, type, path) => {
  const read = await withFile(content, readLogo);
  if (!read.ok) throw new Error(read.error);
  expect(read.value.type).toBe(type);
  expect(read.value.path).toMatch(path);
});

test.each([
  ["<html><body>no picture</body></html>", "is neither an SVG nor a PNG picture"],
  ["", "is neither an SVG nor a PNG picture"],
  ["\u0089PNG\r\n\u001a\n", "is neither an SVG nor a PNG picture"],
  ["x".repeat(100_001), "has 100001 bytes; a logo has at most 100000"],
])("refuses %#", async (content, error) => {
  expect(await withFile(content, readLogo)).toEqual({ ok: false, error });
});

test("refuses what is not there and what is not a file", async () => {
  const missing = await withFile(SVG, (path) => readLogo(`${path}.svg`));
  expect(missing).toEqual({ ok: false, error: "is not a file that can be read" });
  expect(await readLogo(tmpdir())).toEqual({ ok: false, error: "is not a file that can be read" });
});

test("a browser that opens the logo by itself runs no script of it", async () => {
  const read = await withFile(SVG, readLogo);
  if (!read.ok) throw new Error(read.error);
  const response = logoResponse(read.value);
  expect(response.headers.get("content-security-policy")).toBe(
    "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  );
  expect(response.headers.get("content-type")).toBe("image/svg+xml");
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  expect(await response.text()).toBe(SVG);
});
