import { Elysia } from "elysia";
import { z } from "zod";
import { AppError } from "./base/errors.ts";
import type { Db } from "./db/open.ts";
import { type DocumentInfo, type Operation, openApiDocument } from "./http/openapi.ts";

export interface ServiceRouteDeps {
  readonly db: Db;
  readonly operations: readonly Operation[];
  readonly info: DocumentInfo;
  /** What keeps this instance from doing its work, beyond the database; empty when nothing does. */
  readonly findings: () => readonly string[];
}

const okSchema = z.object({ status: z.literal("ok") }).meta({ title: "Ok" });

const notReady = (reasons: readonly string[]) =>
  new AppError("unavailable", { message: reasons.join(" "), headers: { "retry-after": "5" } });

/** What needs no key: is the process alive, can it work, and what does it offer. */
export const createServiceRoutes = ({ db, operations, info, findings }: ServiceRouteDeps) => {
  let document: ReturnType<typeof openApiDocument> | null = null;
  return new Elysia({ name: "service" })
    .get("/healthz", async () => ({ status: "ok" }))
    .get("/readyz", async () => {
      const reasons = [...(db.isWritable() ? [] : ["The database cannot be written."]), ...findings()];
      if (reasons.length > 0) throw notReady(reasons);
      return { status: "ok" };
    })
    .get("/openapi.json", async () => {
      document ??= openApiDocument([...operations, ...SERVICE_OPERATIONS], info);
      return document;
    });
};

export const SERVICE_OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: "/healthz",
    tag: "Service",
    summary: "Is the process alive",
    open: true,
    responses: { 200: { description: "It is.", schema: okSchema, example: { status: "ok" } } },
  },
  {
    method: "GET",
    path: "/readyz",
    tag: "Service",
    summary: "Can it work: the database takes writes, and nothing else is known to be in the way",
    open: true,
    responses: { 200: { description: "It can.", schema: okSchema, example: { status: "ok" } } },
    errors: ["unavailable"],
  },
  {
    method: "GET",
    path: "/openapi.json",
    tag: "Service",
    summary: "This document",
    open: true,
    responses: {
      200: {
        description: "OpenAPI 3.1.",
        schema: z.looseObject({ openapi: z.literal("3.1.0") }),
        example: { openapi: "3.1.0" },
      },
    },
  },
];
