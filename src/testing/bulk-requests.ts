import { expect } from "bun:test";
import type { TestApp, TestRequest } from "./app.ts";

export const BULK_PATH = "/v1/bulk-verifications";

/** The fields of a row that tests use. */
export interface Item {
  readonly row_index: number;
  readonly submitted_email: string;
  readonly normalized_email: string;
  readonly result: { readonly email: string; readonly sub_status: string; readonly verified_at: string } | null;
}

/** `POST /v1/bulk-verifications`; `query` such as `?column=1`. */
export const postList = (app: TestApp, request: TestRequest, query = "") =>
  app.request("POST", BULK_PATH + query, request);

/** Advances the clock until the job has ended, and returns it. */
export const untilJobEnded = async (app: TestApp, key: TestRequest["key"], id: string) => {
  for (let turn = 0; turn < 50; turn++) {
    await app.advance(100);
    const { body } = await app.request("GET", `${BULK_PATH}/${id}`, key === undefined ? {} : { key });
    if (body.completed_at !== null) return body;
  }
  throw new Error("the job does not end");
};

/** A page of items: `target` is the path behind that of all jobs. */
export const fetchItems = async (app: TestApp, key: TestRequest["key"], target: string) => {
  const { body, status } = await app.request("GET", `${BULK_PATH}/${target}`, key === undefined ? {} : { key });
  expect(status).toBe(200);
  return { emails: body.emails as Item[], next: body.next_cursor as string | null };
};
