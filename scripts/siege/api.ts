import { z } from "zod";
import { type AttackContext, pause } from "./attack.ts";

/** What the service answered; status 0 stands for no answer. */
export interface Answer {
  readonly status: number;
  readonly text: string;
}

interface Request {
  readonly key: string;
  readonly method?: "GET" | "POST";
  readonly type?: string;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly idempotencyKey?: string;
}

/** One request of the attack or of the other account; never throws. */
export const ask = async (
  { service, signal }: AttackContext,
  path: string,
  { key, method, type = "application/json", body, idempotencyKey }: Request,
): Promise<Answer> => {
  try {
    const response = await fetch(`${service.url}${path}`, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { "content-type": type }),
        ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
      },
      ...(body === undefined ? {} : { body }),
      signal,
    });
    return { status: response.status, text: await response.text() };
  } catch {
    // The service has died or closed the connection, or the attack is over.
    return { status: 0, text: "" };
  }
};

const listSchema = z.object({ id: z.string(), completed_at: z.string().nullable() });
const POLL_MS = 100;

export const LISTS = "/v1/bulk-verifications";

/** The id of a list that was accepted; null when it was not. */
export const listIdOf = ({ status, text }: Answer): string | null =>
  status === 202 ? listSchema.parse(JSON.parse(text)).id : null;

/** Waits until a list has ended; false when the attack's time is up first. */
export const untilListEnds = async (context: AttackContext, key: string, id: string): Promise<boolean> => {
  for (; !context.signal.aborted; await pause(context, POLL_MS)) {
    const { status, text } = await ask(context, `${LISTS}/${id}`, { key });
    if (status === 200 && listSchema.parse(JSON.parse(text)).completed_at !== null) return true;
  }
  return false;
};

const domainSchema = z.object({ domain: z.object({ id: z.string(), reporting_address: z.string() }) });

/** Enrols a domain for DMARC reports; its id and reporting address. */
export const enrol = async (context: AttackContext, key: string, domain: string) => {
  const { status, text } = await ask(context, "/v1/dmarc/domains", { key, body: JSON.stringify({ domain }) });
  if (status !== 201) throw new Error(`the enrolment of ${domain} was answered with ${status} ${text}`);
  const { id, reporting_address: address } = domainSchema.parse(JSON.parse(text)).domain;
  return { id, address };
};

/** The key of number `n`, round and round. */
export const keyOf = (keys: readonly string[], n: number): string => keys[n % keys.length] ?? "";
