import { DMARC_HTTP } from "./hosts.ts";
import { z } from "zod";

const BASE = `http://${DMARC_HTTP.ip}:${DMARC_HTTP.port}/v1/dmarc`;
const DEADLINE_MS = 40_000;
const PAGES_MAX = 100;

const check = z.object({ code: z.string(), ok: z.boolean().nullable() });
const dnsRecord = z.object({
  host: z.string(),
  action: z.string(),
  value: z.string(),
  current: z.string().nullable(),
  reason: z.string().nullable(),
});
const domain = z.object({
  id: z.string(),
  domain: z.string(),
  status: z.string(),
  reporting_address: z.string(),
  reporting: z.string(),
  policy: z
    .object({ p: z.string(), sp: z.string(), own: z.boolean(), inherited_from: z.string().nullable() })
    .nullable(),
});

/** What the interface answers, as far as the lab looks at it. */
export const Answers = {
  enrolment: z.object({ created: z.boolean(), domain, dns_records: z.array(dnsRecord) }),
  verified: z.object({ domain, previous_status: z.string(), checks: z.array(check), dns_records: z.array(dnsRecord) }),
  dns: z.object({
    dns_records: z.array(dnsRecord),
    service_records: z.array(z.object({ host: z.string(), type: z.string(), value: z.string() })),
  }),
  domain,
} as const;

export type Enrolled = z.output<typeof Answers.enrolment>;

/** Calls of the interface with one key. */
export interface Api {
  /** The status and the body of any answer. */
  send(method: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly body: unknown }>;
  /** The body of an answer that must be of a shape. */
  ask<T>(schema: z.ZodType<T>, method: string, path: string, body?: unknown): Promise<T>;
  /** Every entry of a list, page after page. */
  all<T>(schema: z.ZodType<T>, plural: string, path: string): Promise<T[]>;
}

export const createApi = (key: string): Api => {
  const send: Api["send"] = async (method, path, body) => {
    const answer = await fetch(BASE + path, {
      method,
      headers: { authorization: `Bearer ${key}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? null : JSON.parse(text) };
  };
  const ask: Api["ask"] = async (schema, method, path, body) => {
    const answer = await send(method, path, body);
    const read = schema.safeParse(answer.body);
    if (read.success && answer.status < 300) return read.data;
    throw new Error(
      `${method} ${path} was answered with ${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`,
    );
  };
  return {
    send,
    ask,
    all: async (schema, plural, path) => {
      const page = z.object({ [plural]: z.array(schema), next_cursor: z.string().nullable() });
      const found: z.output<typeof schema>[] = [];
      let cursor = "";
      for (let pages = 0; pages < PAGES_MAX; pages++) {
        const answer = await ask(page, "GET", `${path}${path.includes("?") ? "&" : "?"}limit=10${cursor}`);
        found.push(...(answer[plural] as typeof found));
        if (answer.next_cursor === null) return found;
        cursor = `&cursor=${encodeURIComponent(String(answer.next_cursor))}`;
      }
      throw new Error(`${path} never ends`);
    },
  };
};
