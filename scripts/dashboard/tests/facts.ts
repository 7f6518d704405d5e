/** What the tests know of the stage that `npm run browser` has opened, and shortcuts to it. */
import { Api } from "../api.ts";
import { type HttpClient, signIn } from "../http-client.ts";
import type { StageFacts } from "../stage.ts";
import type { USERS } from "../story.ts";
import type { ControlRequest } from "../world.ts";

const { DASHBOARD_FACTS: given } = process.env;
if (given === undefined) throw new Error("Run these tests with `npm run browser`.");
export const facts = JSON.parse(given) as StageFacts;

export type UserName = keyof typeof USERS;

export const live = new Api(() => facts.url, facts.keys.live);
export const neighbour = new Api(() => facts.url, facts.keys.other);

/** A new session of one of the users. */
export const sessionOf = (name: UserName): Promise<HttpClient> =>
  signIn(facts.url, { email: facts.users[name].email, password: facts.password });

/** Changes the world around the service; what it returns depends on the request. */
export const control = async (request: ControlRequest): Promise<readonly string[]> => {
  const response = await fetch(facts.control, { method: "POST", body: JSON.stringify(request) });
  return (await response.json()) as readonly string[];
};

/** Everything that an account can be robbed of or that can be changed, by its API; equal when nothing changed. */
export const stateOf = async (api: Api): Promise<unknown> => {
  const paths = [
    "/v1/blacklist/targets?limit=100",
    "/v1/dmarc/domains?limit=100",
    "/v1/bulk-verifications?limit=100",
    "/v1/notifications",
  ];
  const answers = await Promise.all(paths.map((path) => api.get<Record<string, unknown>>(path)));
  const kept = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(kept);
    if (value === null || typeof value !== "object") return value;
    const entries = Object.entries(value).filter(([name]) => KEPT.has(name) || LISTS.has(name));
    return Object.fromEntries(entries.map(([name, one]) => [name, kept(one)]));
  };
  return answers.map(kept);
};

const LISTS = new Set(["targets", "domains", "jobs", "bulk_verifications"]);
const KEPT = new Set([
  "id",
  "name",
  "label",
  "value",
  "domain",
  "monitoring_enabled",
  "muted_lists",
  "recipients",
  "webhook_url",
  "alerts",
  "digest",
]);
