import { createSecureContext } from "node:tls";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { readCertificateFiles } from "../net/certificate-files.ts";
import type { TlsMaterial } from "../net/smtp-receiver-engine.ts";
import type { HttpApp } from "../server.ts";
import { CommandFailed } from "./io.ts";
import { describeListenFailure } from "./listen-failure.ts";

/** Longer than the longest wait a caller may ask for (90 s). */
const IDLE_TIMEOUT_S = 120;
/** At the door only what is absurd is turned away, for that is done without a body; each route has its own ceiling. */
const BODY_BYTES_MAX = 1024 * 1024 * 1024;

const PORT_RETRY_MS = 1_000;

type Server = Bun.Server<unknown>;

export interface HttpListenerDeps {
  readonly config: Config;
  readonly app: HttpApp;
  readonly log: Log;
  readonly clock: Clock;
}

/** Where requests come in: plain HTTP, or HTTPS with the operator's certificate. */
export class HttpListener {
  readonly #deps: HttpListenerDeps;
  #server: Server;
  #tls: TlsMaterial | null;
  /** Servers with a certificate that was replaced; they still answer what had begun. */
  readonly #retired = new Set<Server>();
  #cancelRetry = (): void => undefined;

  /** Listens. Throws `CommandFailed` when the port or the certificate cannot be used. */
  constructor(deps: HttpListenerDeps) {
    const { config } = deps;
    this.#deps = deps;
    const tls = readTls(config);
    if (tls?.ok === false) throw new CommandFailed(tls.message, "tls");
    this.#tls = tls?.material ?? null;
    try {
      this.#server = this.#serve(config.port);
    } catch (error) {
      throw new CommandFailed(describeListenFailure(error, config), "listen");
    }
  }

  get port(): number {
    return this.#server.port ?? this.#deps.config.port;
  }

  /**
   * Takes over a certificate that was renewed meanwhile; one that cannot be used leaves the old one in its place. The
   * platform cannot change the certificate of a server, so that a new one takes its port: requests under way are answered,
   * idle connections are closed.
   */
  renewCertificate(): void {
    const { config, log } = this.#deps;
    const fresh = readTls(config);
    if (fresh === null) return;
    if (!fresh.ok) {
      log.warn("the certificate for HTTPS stays the old one", { problem: fresh.message });
      return;
    }
    const { material } = fresh;
    if (material.cert === this.#tls?.cert && material.key === this.#tls.key) return;
    const [old, port] = [this.#server, this.port];
    this.#tls = material;
    this.#retired.add(old);
    void old.stop().finally(() => this.#retired.delete(old));
    this.#takePort(port);
  }

  /** Tries again where another program took the port, or no descriptor was free, in the moment in between. */
  #takePort(port: number): void {
    const { log, clock } = this.#deps;
    try {
      this.#server = this.#serve(port);
      log.info("the certificate for HTTPS was renewed");
    } catch (cause) {
      log.error("the port cannot be taken again", { port, cause });
      this.#cancelRetry = clock.after(PORT_RETRY_MS, () => this.#takePort(port));
    }
  }

  /** Stops accepting; resolves when everything under way is answered. */
  async stop(): Promise<void> {
    this.#cancelRetry();
    await Promise.all(this.#all().map((server) => server.stop()));
  }

  /** Closes every connection, whatever is under way. */
  destroy(): void {
    for (const server of this.#all()) void server.stop(true);
  }

  #all(): Server[] {
    return [this.#server, ...this.#retired];
  }

  #serve(port: number): Server {
    const { config, app } = this.#deps;
    const server = Bun.serve({
      hostname: config.host,
      port,
      idleTimeout: IDLE_TIMEOUT_S,
      maxRequestBodySize: BODY_BYTES_MAX,
      ...(this.#tls === null ? {} : { tls: this.#tls }),
      fetch: app.handle,
    });
    app.attach(server);
    return server;
  }
}

type ReadTls = { readonly ok: true; readonly material: TlsMaterial } | { readonly ok: false; readonly message: string };

/** The certificate as the files hold it now; null where none is set. */
const readTls = ({ tls }: Config): ReadTls | null => {
  if (tls === null) return null;
  const read = readCertificateFiles(tls, "HTTPS");
  if (!read.ok) return { ok: false, message: read.error.message };
  try {
    // A chain whose later certificates are damaged is noticed here, and not when the port is given up already.
    createSecureContext(read.value);
    return { ok: true, material: read.value };
  } catch (error) {
    return { ok: false, message: `The certificate for HTTPS cannot be used: ${textOf(error)}` };
  }
};

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
