import type { Command } from "commander";
import { Option } from "commander";
import { systemClock } from "../base/clock.ts";
import type { KeyMode } from "../base/secrets.ts";
import { composeAccounts } from "../compose.ts";
import type { Db } from "../db/open.ts";
import { secretsView } from "../webhooks/routes.ts";
import { createWebhookSecrets } from "../webhooks/secrets.ts";
import { createWebhookStore, DELIVERY_STATUSES, type DeliveryStatus } from "../webhooks/store.ts";
import { deliveryView } from "../webhooks/webhooks.ts";
import { CommandFailed, type Io, print, table, UsageError } from "./io.ts";
import { withDatabase } from "./workspace.ts";

const SHOWN_DEFAULT = 50;
const SHOWN_MAX = 1_000;

interface Wanted {
  readonly account: string;
  readonly mode: KeyMode;
  readonly json?: boolean;
}

const accountIdOf = (db: Db, name: string): string => {
  const account = composeAccounts(db, systemClock).store.findAccountByName(name);
  if (account !== undefined) return account.id;
  throw new CommandFailed(
    "There is no account of that name. `postwarden accounts list` shows those that exist.",
    "unknown_account",
  );
};

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

/** `webhooks secret | rotate | deliveries` */
export const addWebhookCommands = (program: Command, io: Io): void => {
  const group = program.command("webhooks").description("signed events: secrets and deliveries");

  const showSecrets =
    (act: "current" | "rotate") =>
    async ({ account, mode, json }: Wanted): Promise<void> =>
      withDatabase(io, async (db) => {
        const secrets = createWebhookSecrets({ db, store: createWebhookStore(db), clock: systemClock });
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

  group
    .command("deliveries")
    .description("the newest events and how their delivery goes")
    .requiredOption("--account <name>", "the account")
    .addOption(modeOption())
    .addOption(new Option("--status <status>", "only those").choices([...DELIVERY_STATUSES]))
    .option("--limit <n>", `how many, up to ${SHOWN_MAX}`, String(SHOWN_DEFAULT))
    .option("--json", "print JSON")
    .action((wanted: Wanted & { status?: DeliveryStatus; limit: string }) =>
      withDatabase(io, (db) => {
        const limit = readLimit(wanted.limit);
        const owner = { accountId: accountIdOf(db, wanted.account), mode: wanted.mode };
        const rows = createWebhookStore(db).list(owner, { status: wanted.status }, { before: null, limit });
        const deliveries = rows.map(deliveryView);
        const headings = ["ID", "TYPE", "STATUS", "ATTEMPTS", "NEXT", "URL", "LAST"];
        const cells = deliveries.map(({ id, type, status, attempts, next_attempt_at, url, last_attempt }) => [
          id,
          type,
          status,
          String(attempts),
          next_attempt_at ?? "",
          url,
          last_attempt?.problem ?? (last_attempt?.http_status === null ? "" : String(last_attempt?.http_status ?? "")),
        ]);
        print(io, wanted.json, { deliveries }, () => table(headings, cells));
      }),
    );
};
