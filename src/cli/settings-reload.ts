import { err, type Result } from "../foundation/base/errors.ts";
import type { Log, LogLevel } from "../foundation/base/log.ts";
import { changedSettings, type Config, type Environment, readConfig } from "../service/config.ts";
import { type Io, UsageError } from "./io.ts";

/**
 * Runs a task at every SIGHUP, never twice at once. A SIGHUP that arrives before `use`, while the service starts, is not
 * lost: the task then runs when it is set.
 */
export class Hangups {
  #task: (() => Promise<void>) | null = null;
  /** Since the task last began. */
  #hangups = 0;
  #running: Promise<void> | null = null;

  constructor(io: Pick<Io, "onHangup">) {
    io.onHangup(() => {
      this.#hangups++;
      this.#run();
    });
  }

  /** Sets the task, which must not reject. */
  use(task: () => Promise<void>): void {
    this.#task = task;
    this.#run();
  }

  #run(): void {
    if (this.#running !== null || this.#task === null || this.#hangups === 0) return;
    this.#hangups = 0;
    this.#running = this.#task().then(() => {
      this.#running = null;
      this.#run();
    });
  }
}

/** The settings in use. Log level and trusted proxies can change while the service runs. */
export class ReloadableSettings {
  readonly #readEnvironment: () => Environment;
  #config: Config;

  /** `readEnvironment` reads the variables again, with those of `--env-file`, and throws when the file cannot be read. */
  constructor(config: Config, readEnvironment: () => Environment) {
    this.#config = config;
    this.#readEnvironment = readEnvironment;
  }

  get logLevel(): LogLevel {
    return this.#config.logLevel;
  }

  get trustedProxies(): readonly string[] {
    return this.#config.trustedProxies;
  }

  /** Reads the settings again and logs which ones changed. If any is invalid, none changes. */
  reload(log: Log): void {
    const fresh = this.#read();
    if (!fresh.ok) {
      log.error("settings were not reloaded; the old ones stay in use", { problems: fresh.error });
      return;
    }
    const changed = changedSettings(this.#config, fresh.value);
    const { logLevel, trustedProxies } = fresh.value;
    this.#config = { ...this.#config, logLevel, trustedProxies };
    const needRestart = changedSettings(this.#config, fresh.value);
    log.info("settings were reloaded", { changed: changed.filter((name) => !needRestart.includes(name)) });
    if (needRestart.length > 0) log.warn("changed settings need a restart", { settings: needRestart });
  }

  #read(): Result<Config, readonly string[]> {
    try {
      return readConfig(this.#readEnvironment());
    } catch (error) {
      if (error instanceof UsageError) return err([error.message]);
      throw error;
    }
  }
}
