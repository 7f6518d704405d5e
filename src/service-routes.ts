import { Elysia } from "elysia";
import { AppError } from "./base/errors.ts";
import type { Db } from "./db/open.ts";

export interface ServiceRouteDeps {
  readonly db: Db;
  /** Makes the OpenAPI document, when it is first asked for. */
  readonly describe: () => Promise<object>;
  /** What keeps this instance from doing its work, beyond the database; empty when nothing does. */
  readonly findings: () => readonly string[];
}

const notReady = (reasons: readonly string[]) =>
  new AppError("unavailable", { message: reasons.join(" "), headers: { "retry-after": "5" } });

/** What needs no key: is the process alive, can it work, and what does it offer. */
export const createServiceRoutes = ({ db, describe, findings }: ServiceRouteDeps) => {
  let document: Promise<object> | null = null;
  return new Elysia({ name: "service" })
    .get("/healthz", async () => ({ status: "ok" }))
    .get("/readyz", async () => {
      const reasons = [...(db.isWritable() ? [] : ["The database cannot be written."]), ...findings()];
      if (reasons.length > 0) throw notReady(reasons);
      return { status: "ok" };
    })
    .get("/openapi.json", async () => {
      document ??= describe();
      return await document;
    });
};
