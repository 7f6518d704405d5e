import { errorCode, errorText } from "../foundation/base/errors.ts";
import { isIP } from "node:net";
import { createSecureContext } from "node:tls";
import type { Clock } from "../foundation/base/clock.ts";
import type { Log } from "../foundation/base/log.ts";
import type { Config } from "../service/config.ts";
import { readCertificateFiles, type TlsMaterial } from "../foundation/net/self-signed-file.ts";
import type { HttpApp } from "../service/server.ts";
import { CommandFailed } from "./io.ts";

/** Longer than the longest wait that a client can request (90 s). */
const IDLE_TIMEOUT_S = 120;
/** Beyond this the platform refuses without a response body; each route has its own, lower limit. */
const BODY_BYTES_MAX = 1024 * 1024 * 1024;

const PORT_RETRY_MS = 1_000;

/** TLS 1.2 with forward secrecy and authenticated encryption only (RFC 9325 §4.2); TLS 1.3 has no other suites. */
const CIPHERS = [
  ...["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
  ...["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"],
  ...["ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"],
].join(":");

type Server = Bun.Server<unknown>;

export interface HttpListenerOptions {
  readonly config: Config;
  readonly app: HttpApp;
  readonly log: Log;
  readonly clock: Clock;
}

/** The HTTP server: plain, or HTTPS with the certificate of the settings. */
export class HttpListener {
  readonly #options: HttpListenerOptions;
  #server: Server;
  #tls: TlsMaterial | null;
  /** Servers with a certificate that was replaced; they finish the requests in progress. */
  readonly #retired = new Set<Server>();
  #cancelRetry = (): void => undefined;

  /** Listens. Throws `CommandFailed` when the port or the certificate cannot be used. */
  constructor(options: HttpListenerOptions) {
    const { config } = options;
    this.#options = options;
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
    return this.#server.port ?? this.#options.config.port;
  }

  /**
   * Loads the certificate again if its files changed; an unusable one is logged and the old one stays. The platform cannot
   * replace the certificate of a server, so a new server takes over the port: requests in progress are finished, idle
   * connections are closed.
   */
  renewCertificate(): void {
    const { config, log } = this.#options;
    const fresh = readTls(config);
    if (fresh === null) return;
    if (!fresh.ok) {
      log.warn("HTTPS certificate was not renewed", { error: fresh.message });
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

  /** Retries when another program takes the port in between, or no descriptor is free. */
  #takePort(port: number): void {
    const { log, clock } = this.#options;
    try {
      this.#server = this.#serve(port);
      log.info("HTTPS certificate was renewed");
    } catch (error) {
      log.error("cannot listen again after a certificate renewal", { port, error });
      this.#cancelRetry = clock.after(PORT_RETRY_MS, () => this.#takePort(port));
    }
  }

  /** Stops accepting; resolves when the requests in progress are finished. */
  async stop(): Promise<void> {
    this.#cancelRetry();
    await Promise.all(this.#all().map((server) => server.stop()));
  }

  /** Closes every connection immediately. */
  destroy(): void {
    for (const server of this.#all()) void server.stop(true);
  }

  #all(): Server[] {
    return [this.#server, ...this.#retired];
  }

  #serve(port: number): Server {
    const { config, app } = this.#options;
    const server = Bun.serve({
      hostname: config.host,
      port,
      idleTimeout: IDLE_TIMEOUT_S,
      maxRequestBodySize: BODY_BYTES_MAX,
      ...(this.#tls === null ? {} : { tls: { ...this.#tls, ciphers: CIPHERS } }),
      fetch: app.handle,
    });
    app.attach(server);
    return server;
  }
}

type ReadTls = { readonly ok: true; readonly material: TlsMaterial } | { readonly ok: false; readonly message: string };

/** The certificate in the files; null when none is set. */
const readTls = ({ tls }: Config): ReadTls | null => {
  if (tls === null) return null;
  const read = readCertificateFiles(tls, "HTTPS");
  if (!read.ok) return { ok: false, message: read.error.message };
  try {
    // Detects a damaged certificate in the chain before the port is given up.
    createSecureContext(read.value);
    return { ok: true, material: read.value };
  } catch (error) {
    return { ok: false, message: `The HTTPS certificate is not usable: ${errorText(error)}` };
  }
};

export interface ListenAttempt {
  readonly host: string;
  readonly port: number;
}

/** Why the HTTP port cannot be opened, with the setting to change. */
export const describeListenFailure = (error: unknown, { host, port }: ListenAttempt): string => {
  // The platform also reports EADDRINUSE for a name that has no address.
  const isName = isIP(host) === 0 && host !== "localhost";
  switch (errorCode(error)) {
    case "EADDRINUSE":
      return isName
        ? `POSTWARDEN_HOST: "${host}" is not an address of this machine, or port ${port} is in use.`
        : `Port ${port} of ${host} is in use by another program. Set POSTWARDEN_PORT to another one.`;
    case "EACCES":
      return `Permission denied for port ${port}: ports below 1024 need root or the capability CAP_NET_BIND_SERVICE.`;
    case "EADDRNOTAVAIL":
    case "ENOENT":
      return `POSTWARDEN_HOST: "${host}" is not an address of this machine.`;
    default:
      return `Cannot listen on ${host}:${port}: ${errorText(error)}`;
  }
};
