import { expect, test } from "bun:test";
import { createDocument } from "./service-routes.ts";

test("a document that could not be described once is described for the next request", async () => {
  let described = 0;
  const documentAt = createDocument(async () => {
    described += 1;
    if (described === 1) throw new Error("no memory");
    return { openapi: "3.1.0" };
  });
  await expect(documentAt("http://a.test")).rejects.toThrow("no memory");
  const [first, second] = [await documentAt("http://a.test"), await documentAt("http://b.test")];
  expect([first, second].map((bytes) => Buffer.from(bytes).toString())).toEqual(Array(2).fill('{"openapi":"3.1.0"}'));
  expect(described).toBe(2);
});
