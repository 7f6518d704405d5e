import { systemClock } from "../foundation/base/clock.ts";
import { type BulkActionResult, DeliveryActions } from "../notifications/webhooks/delivery-actions.ts";
import type { Owner } from "../foundation/base/secrets.ts";
import type { Db } from "../foundation/db/open.ts";
import { Endpoints } from "../notifications/webhooks/endpoints.ts";
import { DELIVERY_STATUSES, DeliveryStore } from "../notifications/webhooks/delivery-store.ts";
import { secretsView } from "../notifications/webhooks/routes.ts";
import { WebhookSecrets } from "../notifications/webhooks/secret-store.ts";
import { deliveryView } from "../notifications/webhooks/webhooks.ts";
import { argument, choice, command, group, limit, option, type Terminal, time } from "./command.ts";
import { inAccount, performInSteps } from "./data-directory.ts";
import { WEBHOOK_TEST } from "./notifications.ts";
import { tableTime } from "./terminal-text.ts";

const secretCommand = (act: "current" | "rotate", help: { readonly description: string; readonly example: string }) =>
  command({
    ...help,
    on: inAccount("events"),
    async run({ db, owner, audit, print, table }) {
      const secrets = new WebhookSecrets({ db, clock: systemClock });
      const action = act === "rotate" ? "webhooks.rotate" : "webhooks.secret.show";
      const view = await audit.perform({
        action: { action, accountId: owner.accountId, subject: owner.mode },
        work: async () => secretsView(secrets[act](owner)),
      });
      const rows = view.secrets.map(({ secret, created_at, valid_until }) => [
        ...[secret, tableTime(created_at), tableTime(valid_until)],
      ]);
      print(view, () => table(["SECRET", "SINCE", "UNTIL"], rows));
    },
  });

/** The options that select deliveries. */
const filters = (status: string) => ({
  type: option("<type>", "only events of this type"),
  url: option("<url>", "only events for this URL"),
  subject: option("<subject>", "only events about this subject, such as target:ID"),
  sinceMs: { ...time("only events at or after this time (ISO 8601)"), flag: "since" },
  untilMs: { ...time("only events before this time (ISO 8601)"), flag: "until" },
  status: choice("<status>", DELIVERY_STATUSES, status),
});

/** Filters with the URL that a masked one stands for. */
const resolved = <F extends { readonly url?: string | undefined }>(
  { db, owner }: { readonly db: Db; readonly owner: Owner },
  filters: F,
): F => {
  const endpoints = new Endpoints({ db, clock: systemClock }, new DeliveryStore(db));
  return filters.url === undefined ? filters : { ...filters, url: endpoints.resolve(owner, filters.url) };
};

const tableOf = ({ table }: Terminal, deliveries: ReadonlyArray<ReturnType<typeof deliveryView>>): string => {
  const rows = deliveries.map(({ id, type, status, attempts, next_attempt_at, url, last_attempt }) => [
    ...[id, type, status, String(attempts), tableTime(next_attempt_at), url],
    last_attempt?.problem ?? String(last_attempt?.http_status ?? ""),
  ]);
  return table(["ID", "TYPE", "STATUS", "ATTEMPTS", "NEXT", "URL", "LAST"], rows);
};

interface Change {
  readonly description: string;
  readonly example: string;
  readonly which: string;
  readonly status: string | null;
  readonly textOf: (count: number) => string;
}

/** Changes one delivery, or all that match the filters. */
const changeCommand = (act: "redeliver" | "cancel", { which, status, textOf, ...help }: Change) => {
  const { status: statusOption, ...others } = filters(status ?? "");
  return command({
    ...help,
    on: inAccount("events"),
    args: { id: argument("[id]", which) },
    options: { ...others, ...(status === null ? {} : { status: statusOption }) },
    async run(context, { id, ...selected }) {
      const { db, owner, audit, io, print } = context;
      const { accountId, mode } = owner;
      const action = `webhooks.${act}`;
      const actions = new DeliveryActions({ db, clock: systemClock }, new DeliveryStore(db), null);
      if (id !== undefined) {
        const delivery = await audit.perform({
          action: { action, accountId, subject: id },
          work: async () => deliveryView(await actions[act](owner, id)),
        });
        return print(delivery, () => tableOf(context, [delivery]));
      }
      const changeMany = act === "redeliver" ? "redeliverMany" : "cancelMany";
      const count = await performInSteps(io, db, {
        action: { action, accountId, subject: mode },
        async work() {
          let [changed, after]: [number, string | null] = [0, null];
          do {
            const done: BulkActionResult = await actions[changeMany](owner, resolved(context, selected), after);
            [changed, after] = [changed + done.count, done.next];
          } while (after !== null);
          return changed;
        },
        resultOf: (deliveries) => ({ deliveries }),
      });
      print({ count }, () => textOf(count));
    },
  });
};

const WEBHOOKS = group(
  {
    description: "Manage signing secrets and deliveries of webhook events.",
    example: "webhooks deliveries --account acme --status failed",
  },
  {
    secret: secretCommand("current", {
      description: "Print the secret that signs the webhooks of an account.",
      example: "webhooks secret --account acme",
    }),
    rotate: secretCommand("rotate", {
      description: "Create a new signing secret; the old secret also signs for 24 hours.",
      example: "webhooks rotate --account acme",
    }),
    test: WEBHOOK_TEST,
    deliveries: command({
      description: "List the newest events and the state of their delivery.",
      example: "webhooks deliveries --account acme --status failed",
      on: inAccount("events"),
      options: { ...filters("only this status"), limit: limit(50, 1_000) },
      run(context, { limit: shown, ...selected }) {
        const rows = new DeliveryStore(context.db).list(context.owner, resolved(context, selected), {
          before: null,
          limit: shown,
        });
        const deliveries = rows.map(deliveryView);
        context.print({ deliveries }, () => tableOf(context, deliveries));
      },
    }),
    redeliver: changeCommand("redeliver", {
      description: "Send events again; a running server sends them within a second.",
      example: "webhooks redeliver --account acme --since 2026-01-01T00:00:00Z",
      which: "id of a delivery; without it, all that match the filters",
      status: "only this status (default: rejected and failed)",
      textOf: (count) => `${count} will be sent again.`,
    }),
    cancel: changeCommand("cancel", {
      description: "Cancel waiting events; those queued behind them are sent.",
      example: "webhooks cancel --account acme --url https://example.com/hook",
      which: "id of a delivery; without it, all pending deliveries that match the filters",
      status: null,
      textOf: (count) => `${count} cancelled.`,
    }),
  },
);

export const WEBHOOK_COMMANDS = { webhooks: WEBHOOKS };
