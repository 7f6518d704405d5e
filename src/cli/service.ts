import { systemClock } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import { Service } from "../service/compose.ts";
import { freshResolverOf, systemPlatform } from "../service/platform.ts";
import type { Config } from "../service/config.ts";
import { rateOf } from "../accounts/billing/store.ts";
import type { Db } from "../foundation/db/open.ts";
import { labelSchema } from "../foundation/http/schema-fields.ts";
import type { recipientsSchema } from "../foundation/mail/recipients.ts";
import { createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { webhookUrlSchema } from "../notifications/webhooks/url-store.ts";
import type { Caller } from "../foundation/http/guard.ts";
import { accountOptions, type Surroundings, type Terminal } from "./command.ts";
import { accountIdOf, inDatabase } from "./data-directory.ts";
import { CommandFailed, UsageError } from "./io.ts";

/** The use cases of the service for one command, on behalf of an account. */
export interface CommandService {
  readonly service: Service;
  readonly config: Config;
  readonly db: Db;
  readonly caller: Caller;
  /** Performs a change of the account with its entry in the audit log. */
  readonly perform: <T>(done: Done, work: () => Promise<T>, isRecordedUnchanged?: (value: T) => boolean) => Promise<T>;
}

/** What the audit log says of a change. */
interface Done {
  readonly action: string;
  readonly subject: string;
  readonly after?: Readonly<Record<string, unknown>>;
}

/** Composes the service on a database for the time of `work`. Nothing is started. */
export const withService = async <T>(
  { io }: Pick<Terminal, "io">,
  { db, config }: Pick<CommandService, "db" | "config">,
  work: (service: Service) => Promise<T>,
): Promise<T> => {
  const platform = systemPlatform(config);
  const freshResolver = freshResolverOf(config);
  const log = createLog("warn", systemClock, io.err);
  const baseUrl = config.baseUrl ?? `http://${config.host}:${config.port}`;
  const service = new Service({ config, db, log, platform, freshResolver, baseUrl });
  try {
    // Lists are verified by the server.
    await service.bulk.jobs.stop();
    return await work(service);
  } finally {
    service.engine.close();
    await service.dmarc.stop();
    freshResolver.close();
    platform.close();
  }
};

/**
 * Commands that need the use cases of the service on the database of the data directory: a server that uses the same database
 * goes on with what the command changed.
 */
export const inService = (things: string): Surroundings<CommandService, ReturnType<typeof accountOptions>> => ({
  options: accountOptions(things),
  open: (terminal, { account, mode }, work) =>
    inDatabase.open(terminal, {}, ({ db, config, audit }) =>
      withService(terminal, { db, config }, async (service) => {
        const accountId = accountIdOf(db, account);
        const owner = service.accounts.store.findAccount(accountId);
        if (owner === undefined) throw new CommandFailed("The account was removed meanwhile.", "unknown_account");
        const caller = { keyId: "", accountId, mode, scopes: [], rate: rateOf(owner) };
        const perform: CommandService["perform"] = (done, change, isRecordedUnchanged) =>
          audit.perform({ action: { ...done, accountId }, work: change, isRecordedUnchanged });
        await work({ service, config, db, caller, perform });
      }),
    ),
});

/** A URL for webhooks; `name` is what it was given as. */
export const readWebhookUrl = ({ config }: CommandService, url: string, name = url): string => {
  const read = webhookUrlSchema(createUrlPolicy(config.webhookAllowNetworks)).safeParse(url);
  if (read.success) return read.data;
  throw new UsageError(`${name}: ${read.error.issues[0]?.message ?? "not a URL"}`, "webhook_url");
};

/** A text of the user's own about something, by the schema of the API; `option` is what it was given as. */
export const readLabel = (text: string, option: string): string => {
  const read = labelSchema("", undefined, "Leave the option out rather than empty").safeParse(text);
  if (read.success) return read.data;
  throw new UsageError(`${option}: ${read.error.issues[0]?.message ?? "invalid"}.`, option.slice(2));
};

/** The addresses of an option in their normal form, by the schema of the API. Empty ones are left out. */
export const readRecipients = (
  schema: ReturnType<typeof recipientsSchema>,
  addresses: readonly string[],
): readonly string[] => {
  const wanted = addresses.filter((address) => address !== "");
  const read = schema.safeParse(wanted);
  if (read.success) return read.data;
  const [first] = read.error.issues;
  const given = wanted[Number(first?.path[0] ?? -1)];
  throw new UsageError(
    `--recipient${given === undefined ? "" : ` "${given}"`}: ${first?.message ?? "invalid"}.`,
    "recipients",
  );
};

type Changed<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The settings of a change that were given: one that is undefined stays. */
export const changeOf = <T extends object>(settings: T): Changed<T> => {
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  if (given.length === 0) throw new UsageError("Name at least one setting to change.");
  // Only undefined settings were left out.
  return Object.fromEntries(given) as Changed<T>;
};
