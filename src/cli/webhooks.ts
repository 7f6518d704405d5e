import { type Command, Option } from "commander";
import { systemClock } from "../foundation/base/clock.ts";
import type { Db } from "../foundation/db/open.ts";
import { type BulkActionResult, DeliveryActions } from "../notifications/webhooks/delivery-actions.ts";
import { secretsView } from "../notifications/webhooks/routes.ts";
import { WebhookSecrets } from "../notifications/webhooks/secret-store.ts";
import {
  DeliveryStore,
  DELIVERY_STATUSES,
  type DeliveryFilters,
  type DeliveryStatus,
} from "../notifications/webhooks/delivery-store.ts";
import { deliveryView } from "../notifications/webhooks/webhooks.ts";
import { type AccountOptions, addCommand, addGroup, ofAccount, readLimit, readTime } from "./command.ts";
import { addWebhookTest } from "./notifications.ts";
import { type Io, print } from "./io.ts";
import { table, tableTime } from "./terminal-text.ts";
import { accountIdOf, performAction, performInSteps, withDatabase, withDatabaseUntilDone } from "./data-directory.ts";
import type { Owner } from "../foundation/base/secrets.ts";

const SHOWN_DEFAULT = 50;
const SHOWN_MAX = 1_000;

interface FilterOptions extends AccountOptions {
  readonly status?: DeliveryStatus;
  readonly type?: string;
  readonly url?: string;
  readonly subject?: string;
  readonly since?: string;
  readonly until?: string;
}

const secretTable = ({ secrets }: ReturnType<typeof secretsView>, columns: number): string =>
  table(
    ["SECRET", "SINCE", "UNTIL"],
    secrets.map(({ secret, created_at, valid_until }) => [secret, tableTime(created_at), tableTime(valid_until)]),
    columns,
  );

/** `webhooks secret | rotate | test | deliveries | redeliver | cancel` */
export const addWebhookCommands = (program: Command, io: Io): void => {
  const group = addGroup(program, "webhooks", {
    description: "Manage signing secrets and deliveries of webhook events.",
    example: "webhooks deliveries --account acme --status failed",
  });
  addSecretCommand(group, "secret", {
    act: "current",
    description: "Print the secret that signs the webhooks of an account.",
    io,
  });
  addSecretCommand(group, "rotate", {
    act: "rotate",
    description: "Create a new signing secret; the old secret also signs for 24 hours.",
    io,
  });
  addWebhookTest(group, io);
  addDeliveries(group, io);
  const redeliver = addCommand(group, "redeliver", {
    description: "Send events again; a running server sends them within a second.",
    example: "webhooks redeliver --account acme --since 2026-01-01T00:00:00Z",
  }).argument("[id]", "id of a delivery; without it, all that match the filters");
  withFilters(redeliver, "only this status (default: rejected and failed)").action(changeDeliveries(io, "redeliver"));
  const cancel = addCommand(group, "cancel", {
    description: "Cancel waiting events; those queued behind them are sent.",
    example: "webhooks cancel --account acme --url https://example.com/hook",
  }).argument("[id]", "id of a delivery; without it, all pending deliveries that match the filters");
  withFilters(cancel).action(changeDeliveries(io, "cancel"));
};

interface SecretCommand {
  readonly act: "current" | "rotate";
  readonly description: string;
  readonly io: Io;
}

const addSecretCommand = (group: Command, name: string, { act, description, io }: SecretCommand): Command =>
  ofAccount(addCommand(group, name, { description, example: `webhooks ${name} --account acme` }), "events").action(
    ({ account, mode, json }: AccountOptions) =>
      withDatabaseUntilDone(io, async (db) => {
        const secrets = new WebhookSecrets({ db, clock: systemClock });
        const accountId = accountIdOf(db, account);
        const name = act === "rotate" ? "webhooks.rotate" : "webhooks.secret.show";
        const action = { action: name, accountId, subject: mode };
        const work = async () => secretsView(secrets[act]({ accountId, mode }));
        const view = await performAction(io, db, { action, work });
        print(io, json, view, () => secretTable(view, io.columns));
      }),
  );

/** Adds the options that select deliveries; `--status` where `statusHelp` is given. */
const withFilters = (command: Command, statusHelp?: string): Command => {
  ofAccount(command, "events")
    .option("--type <type>", "only events of this type")
    .option("--url <url>", "only events for this URL")
    .option("--subject <subject>", "only events about this subject, such as target:ID")
    .option("--since <time>", "only events at or after this time (ISO 8601)")
    .option("--until <time>", "only events before this time (ISO 8601)");
  return statusHelp === undefined
    ? command
    : command.addOption(new Option("--status <status>", statusHelp).choices([...DELIVERY_STATUSES]));
};

const addDeliveries = (group: Command, io: Io): Command =>
  withFilters(
    addCommand(group, "deliveries", {
      description: "List the newest events and the state of their delivery.",
      example: "webhooks deliveries --account acme --status failed",
    }),
    "only this status",
  )
    .option("--limit <n>", `how many, up to ${SHOWN_MAX}`, String(SHOWN_DEFAULT))
    .action((options: FilterOptions & { limit: string }) =>
      withDatabase(io, (db) => {
        const page = { before: null, limit: readLimit(options.limit, SHOWN_MAX) };
        const rows = new DeliveryStore(db).list(accountOfRequest(db, options), readFilters(options), page);
        const deliveries = rows.map(deliveryView);
        print(io, options.json, { deliveries }, () => deliveryTable(deliveries, io.columns));
      }),
    );

/** Redelivers or cancels one delivery, or all that match the filters. */
const changeDeliveries =
  (io: Io, act: "redeliver" | "cancel") =>
  (id: string | undefined, options: FilterOptions): Promise<void> =>
    withDatabaseUntilDone(io, async (db) => {
      const actions = new DeliveryActions({ db, clock: systemClock }, new DeliveryStore(db), null);
      const owner = accountOfRequest(db, options);
      const [action, { accountId }] = [`webhooks.${act}`, owner];
      if (id !== undefined) {
        const work = async () => deliveryView(await actions[act](owner, id));
        const delivery = await performAction(io, db, { action: { action, accountId, subject: id }, work });
        print(io, options.json, delivery, () => deliveryTable([delivery], io.columns));
        return;
      }
      const changeAll = async (): Promise<number> => {
        let [count, after]: [number, string | null] = [0, null];
        do {
          const done: BulkActionResult = await actions[act === "redeliver" ? "redeliverMany" : "cancelMany"](
            owner,
            readFilters(options),
            after,
          );
          [count, after] = [count + done.count, done.next];
        } while (after !== null);
        return count;
      };
      const count = await performInSteps(io, db, {
        action: { action, accountId, subject: owner.mode },
        work: changeAll,
        resultOf: (deliveries) => ({ deliveries }),
      });
      print(io, options.json, { count }, () =>
        act === "redeliver" ? `${count} will be sent again.` : `${count} cancelled.`,
      );
    });

const readFilters = ({ status, type, url, subject, since, until }: FilterOptions): DeliveryFilters => ({
  ...{ status, type, url, subject },
  sinceMs: readTime("since", since),
  untilMs: readTime("until", until),
});

const accountOfRequest = (db: Db, { account, mode }: AccountOptions): Owner => ({
  accountId: accountIdOf(db, account),
  mode,
});

const deliveryTable = (deliveries: ReadonlyArray<ReturnType<typeof deliveryView>>, columns: number): string =>
  table(
    ["ID", "TYPE", "STATUS", "ATTEMPTS", "NEXT", "URL", "LAST"],
    deliveries.map(({ id, type, status, attempts, next_attempt_at, url, last_attempt }) => [
      ...[id, type, status, String(attempts), tableTime(next_attempt_at), url],
      last_attempt?.problem ?? String(last_attempt?.http_status ?? ""),
    ]),
    columns,
  );
