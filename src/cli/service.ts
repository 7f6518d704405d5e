import { systemClock } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import { Service } from "../service/compose.ts";
import { freshResolverOf, systemPlatform } from "../service/platform.ts";
import type { Config } from "../service/config.ts";
import { rateOf } from "../accounts/billing/store.ts";
import type { Db } from "../foundation/db/open.ts";
import type { Caller } from "../foundation/http/guard.ts";
import { type AccountOptions, accountOptions, type Surroundings } from "./command.ts";
import { accountIdOf, openDatabase, performAction } from "./data-directory.ts";
import { loadConfig } from "./prepare-directory.ts";
import { CommandFailed, type Io } from "./io.ts";

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

/**
 * Runs `work` with the use cases of the service on the database of the data directory. Nothing is started: a server that
 * uses the same database goes on with what the command changed.
 */
export const withService = async (
  io: Io,
  { account, mode }: AccountOptions,
  work: (command: CommandService) => Promise<void>,
): Promise<void> => {
  const config = loadConfig(io);
  const db = openDatabase(io, config);
  const [platform, freshResolver] = [systemPlatform(config), freshResolverOf(config)];
  const log = createLog("warn", systemClock, io.err);
  const baseUrl = config.baseUrl ?? `http://${config.host}:${config.port}`;
  const service = new Service({ config, db, log, platform, freshResolver, baseUrl });
  try {
    // Lists are verified by the server.
    await service.bulk.jobs.stop();
    const accountId = accountIdOf(db, account);
    const owner = service.accounts.store.findAccount(accountId);
    if (owner === undefined) throw new CommandFailed("The account was removed meanwhile.", "unknown_account");
    const caller = { keyId: "", accountId, mode, scopes: [], rate: rateOf(owner) };
    const perform: CommandService["perform"] = (done, change, isRecordedUnchanged) =>
      performAction(io, db, { action: { ...done, accountId }, work: change, isRecordedUnchanged });
    await work({ service, config, db, caller, perform });
  } finally {
    service.engine.smtp.outages.stop();
    await service.dmarc.stop();
    freshResolver.close();
    platform.close();
    db.close();
  }
};

/** Commands that need the use cases of the service. */
export const inService = (things: string): Surroundings<CommandService, ReturnType<typeof accountOptions>> => ({
  options: accountOptions(things),
  open: ({ io }, options, work) => withService(io, options, work),
});
