import { describe, expect, test } from "bun:test";
import { DMARC_ROUTES } from "./operations.ts";

describe.each(DMARC_ROUTES.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
  "%s",
  (_, { description, body, responses }) => {
    test("has a description", () => {
      expect(description ?? "").not.toBe("");
    });

    test("has an example of every body in JSON", () => {
      const bodies = [body, ...Object.values(responses)].filter((each) => each?.schema !== undefined);
      expect(bodies.filter((each) => each?.example === undefined)).toEqual([]);
    });
  },
);
