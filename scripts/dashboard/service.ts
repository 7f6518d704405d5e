/** The binary of the dashboard's world, at any time: its clock can be set through libfaketime. */
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { APT_GET } from "../harness/apt.ts";
import { BINARY, type Server, clockOf, command, findFaketime, startServer } from "../harness/binary.ts";

const ROOT = resolve(import.meta.dir, "../..");
const STOP_MS_MAX = 10_000;

/** Waits use the real time, which passes slowly while a day of history is made. */
const PAST_SETTINGS = { POSTWARDEN_GREYLIST_RETRIES_S: "1,1", POSTWARDEN_SMTP_REPLY_TIMEOUT_MS: "1000" };

const newestChangeMs = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((newest, entry) => Math.max(newest, statSync(join(entry.parentPath, entry.name)).mtimeMs), 0);

/** Builds the binary when it is missing or older than what it is made of. */
export const ensureBinary = (): void => {
  const sources = ["src", "fixtures", "drizzle"].map((folder) => newestChangeMs(join(ROOT, folder)));
  const changedMs = Math.max(...sources, statSync(join(ROOT, "package-lock.json")).mtimeMs);
  if (existsSync(BINARY) && statSync(BINARY).mtimeMs > changedMs) return;
  console.error("Building dist/postwarden …");
  const { exitCode } = Bun.spawnSync([process.execPath, join(ROOT, "scripts/build.ts")], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (exitCode !== 0) throw new Error("npm run build failed");
};

/** One data directory, its commands, and at most one server on it. */
export class DashboardService {
  readonly #offsetFile: string;
  #running: Server | null = null;
  #isShifted: boolean = false;
  #log: () => string = () => "";
  #nowMs: () => number = () => Date.now();

  constructor(
    readonly directory: string,
    private readonly settings: Readonly<Record<string, string>>,
  ) {
    this.#offsetFile = join(directory, "clock-offset");
    mkdirSync(join(directory, "data"), { recursive: true, mode: 0o700 });
    mkdirSync(join(directory, "backups"), { recursive: true, mode: 0o700 });
  }

  get url(): string {
    if (this.#running === null) throw new Error("the service is not running");
    return this.#running.url;
  }

  get running(): Server {
    if (this.#running === null) throw new Error("the service is not running");
    return this.#running;
  }

  /** What the last server logged. */
  log(): string {
    return this.#log();
  }

  /** The time that the service sees. */
  nowMs(): number {
    return this.#nowMs();
  }

  /** Sets the clock of the server and of commands. */
  setClock(atMs: number): void {
    const offsetS = Math.round((atMs - Date.now()) / 1_000);
    writeFileSync(this.#offsetFile, offsetS < 0 ? String(offsetS) : `+${offsetS}`);
    this.#isShifted = true;
    this.#nowMs = () => Date.now() + offsetS * 1_000;
  }

  /** The real time again, from the next start on. */
  useRealClock(): void {
    this.#isShifted = false;
    this.#nowMs = () => Date.now();
  }

  #environment(): Record<string, string> {
    if (!this.#isShifted) return { ...this.settings };
    return { ...this.settings, ...PAST_SETTINGS, ...clockOf(this.#offsetFile) };
  }

  async start(): Promise<Server> {
    this.#running = await startServer(this.#environment(), { cwd: this.directory });
    this.#log = this.#running.log;
    return this.#running;
  }

  async stop(): Promise<void> {
    const running = this.#running;
    if (running === null) return;
    this.#running = null;
    running.process.kill("SIGTERM");
    const timer = setTimeout(() => running.process.kill("SIGKILL"), STOP_MS_MAX);
    await running.process.exited;
    clearTimeout(timer);
  }

  /** Runs one command to its end and returns what it printed as JSON; throws when it fails. */
  command<T>(...args: readonly string[]): T {
    return this.commandWith<T>("", ...args);
  }

  /** The same with a line on standard input. */
  commandWith<T>(line: string, ...args: readonly string[]): T {
    return command<T>(args, this.#environment(), { cwd: this.directory, line });
  }
}

const APT_MS_MAX = 240_000;
/** Debian's chromium of the package `chromium-headless-shell`. */
export const CHROMIUM = "/usr/bin/chromium-headless-shell";

const IS_INSTALLED = {
  "chromium-headless-shell": () => existsSync(CHROMIUM),
  faketime: () => findFaketime() !== null,
  iproute2: () => Bun.which("ip") !== null,
};

/** Installs what is missing, as root; otherwise says what to install. */
export const ensurePackages = (wanted: ReadonlyArray<keyof typeof IS_INSTALLED>): void => {
  const missing = wanted.filter((name) => !IS_INSTALLED[name]());
  if (missing.length === 0) return;
  const sentence = `These Debian packages are missing: ${missing.join(" ")}.`;
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get"))
    throw new Error(`${sentence} Install them with apt-get.`);
  console.error(`${sentence} Installing them …`);
  const apt = (...args: string[]) =>
    Bun.spawnSync([...APT_GET, "-q", ...args], {
      ...{ env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", DEBIAN_FRONTEND: "noninteractive" }, timeout: APT_MS_MAX },
      stdio: ["ignore", "ignore", "inherit"],
    }).exitCode === 0;
  if (!apt("update") || !apt("install", "-y", "--no-install-recommends", ...missing))
    throw new Error(`${sentence} apt-get failed.`);
};
