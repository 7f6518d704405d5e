import type { Command } from "commander";
import { Option } from "commander";
import { systemClock } from "../base/clock.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Db } from "../db/open.ts";
import { createDeliveryActions } from "../webhooks/delivery-actions.ts";
import { secretsView } from "../webhooks/routes.ts";
import { createWebhookSecretStore } from "../webhooks/secret-store.ts";
import { createWebhookSecrets } from "../webhooks/secrets.ts";
import {
  createDeliveryStore,
  DELIVERY_STATUSES,
  type DeliveryFilters,
  type DeliveryStatus,
  type WebhookOwner,
} from "../webhooks/delivery-store.ts";
import { deliveryView } from "../webhooks/webhooks.ts";
import { type Io, print, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";
import { accountIdOf, withDatabase } from "./data-directory.ts";

const SHOWN_DEFAULT = 50;
const SHOWN_MAX = 1_000;

interface Wanted {
  readonly account: string;
  readonly mode: KeyMode;
  readonly json?: boolean;
}

interface Filters extends Wanted {
  readonly status?: DeliveryStatus;
  readonly type?: string;
  readonly url?: string;
  readonly subject?: string;
  readonly since?: string;
  readonly until?: string;
}

const readLimit = (text: string): number => {
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > SHOWN_MAX) throw new UsageError(`--limit is a whole number from 1 to ${SHOWN_MAX}.`);
  return limit;
};

const asTable = ({ secrets }: ReturnType<typeof secretsView>): string =>
  table(
    ["SECRET", "SINCE", "UNTIL"],
    secrets.map(({ secret, created_at, valid_until }) => [secret, created_at, valid_until ?? ""]),
  );

/** `webhooks secret | rotate | deliveries | redeliver | cancel` */
export const addWebhookCommands = (program: Command, io: Io): void => {
  const group = program.command("webhooks").description("signed events: secrets and deliveries");

  const showSecrets =
    (act: "current" | "rotate") =>
    async ({ account, mode, json }: Wanted): Promise<void> =>
      withDatabase(io, async (db) => {
        const secrets = createWebhookSecrets({ db, store: createWebhookSecretStore(db), clock: systemClock });
        const view = secretsView(secrets[act]({ accountId: accountIdOf(db, account), mode }));
        print(io, json, view, () => asTable(view));
      });

  const modeOption = () =>
    new Option("--mode <mode>", "events of live or of test keys").choices(["live", "test"]).default("live");

  group
    .command("secret")
    .description("the secret that signs an account's webhooks")
    .requiredOption("--account <name>", "the account")
    .addOption(modeOption())
    .option("--json", "print JSON")
    .action(showSecrets("current"));

  group
    .command("rotate")
    .description("a new secret; the old one signs as well for 24 hours")
    .requiredOption("--account <name>", "the account")
    .addOption(modeOption())
    .option("--json", "print JSON")
    .action(showSecrets("rotate"));

  const shown = (option: Command) =>
    option
      .requiredOption("--account <name>", "the account")
      .addOption(modeOption())
      .option("--type <type>", "only events of this type")
      .option("--url <url>", "only those for this URL")
      .option("--subject <subject>", "only events about this, as target:ID")
      .option("--since <time>", "only events from this moment on (ISO 8601)")
      .option("--until <time>", "only events before this moment (ISO 8601)")
      .option("--json", "print JSON");
  const statusOption = (words: string) => new Option("--status <status>", words).choices([...DELIVERY_STATUSES]);

  shown(group.command("deliveries"))
    .description("the newest events and how their delivery goes")
    .addOption(statusOption("only those"))
    .option("--limit <n>", `how many, up to ${SHOWN_MAX}`, String(SHOWN_DEFAULT))
    .action((wanted: Filters & { limit: string }) =>
      withDatabase(io, (db) => {
        const limit = readLimit(wanted.limit);
        const rows = createDeliveryStore(db).list(ownerOf(db, wanted), readFilters(wanted), { before: null, limit });
        const deliveries = rows.map(deliveryView);
        print(io, wanted.json, { deliveries }, () => deliveryTable(deliveries));
      }),
    );

  const doToDeliveries =
    (act: "redeliver" | "cancel") =>
    async (id: string | undefined, wanted: Filters): Promise<void> =>
      withDatabase(io, async (db) => {
        const actions = createDeliveryActions({
          db,
          store: createDeliveryStore(db),
          clock: systemClock,
          wake: () => undefined,
        });
        const owner = ownerOf(db, wanted);
        if (id !== undefined) {
          const delivery = deliveryView(await actions[act](owner, id));
          print(io, wanted.json, delivery, () => deliveryTable([delivery]));
          return;
        }
        const many = act === "redeliver" ? actions.redeliverMany : actions.cancelMany;
        let [count, after]: [number, string | null] = [0, null];
        do {
          const done = await many(owner, readFilters(wanted), after);
          [count, after] = [count + done.count, done.next];
        } while (after !== null);
        print(io, wanted.json, { count }, () =>
          act === "redeliver" ? `${count} to be sent again` : `${count} cancelled`,
        );
      });

  shown(group.command("redeliver").argument("[id]", "one delivery; without it all that pass the filters"))
    .description("send events again; a server that runs does it within a second")
    .addOption(statusOption("only those; rejected and failed ones unless told"))
    .action(doToDeliveries("redeliver"));

  shown(group.command("cancel").argument("[id]", "one delivery; without it all pending ones that pass the filters"))
    .description("give up events that wait; what is behind them goes on")
    .action(doToDeliveries("cancel"));
};

const readTime = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new UsageError(`--${name} is a time such as 2026-01-01T00:00:00Z.`);
  return ms;
};

const readFilters = ({ status, type, url, subject, since, until }: Filters): DeliveryFilters => ({
  ...{ status, type, url, subject },
  sinceMs: readTime("since", since),
  untilMs: readTime("until", until),
});

const ownerOf = (db: Db, { account, mode }: Wanted): WebhookOwner => ({ accountId: accountIdOf(db, account), mode });

const deliveryTable = (deliveries: ReadonlyArray<ReturnType<typeof deliveryView>>): string =>
  table(
    ["ID", "TYPE", "STATUS", "ATTEMPTS", "NEXT", "URL", "LAST"],
    deliveries.map(({ id, type, status, attempts, next_attempt_at, url, last_attempt }) => [
      ...[id, type, status, String(attempts), next_attempt_at ?? "", url],
      last_attempt?.problem ?? String(last_attempt?.http_status ?? ""),
    ]),
  );
