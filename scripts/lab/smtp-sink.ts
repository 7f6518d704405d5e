import { addressOf, SMTP_PORT, SUFFIX } from "./hosts.ts";
import type { HostName } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";

const BACKLOG = "64";

/** Postfix's test server takes every recipient, unless told otherwise. */
const SINKS: Readonly<Partial<Record<HostName, readonly string[]>>> = {
  sink: [],
  sinkhelo: ["-e"],
  sinkrefuses: ["-f", "rcpt", "-B", "550 Requested action not taken"],
  sinkrcpt: ["-f", "rcpt"],
  sinkunknown: ["-f", "rcpt", "-B", "550 5.1.1 User unknown"],
  sinkdefers: ["-r", "rcpt"],
  sinkdrops: ["-q", "rcpt"],
  sinkmail: ["-f", "mail"],
  sinkquit: ["-q", "quit"],
};

/** Starts a smtp-sink for each behaviour. */
export const startSinks = async (supervisor: Supervisor): Promise<void> => {
  const sinks = Object.entries(SINKS).map(([host, options]) => ({ host, options, ip: addressOf(host as HostName) }));
  for (const { host, options, ip } of sinks) {
    const argv = ["smtp-sink", "-u", "nobody", "-h", `${host}.mx.${SUFFIX}`, ...options, `${ip}:${SMTP_PORT}`, BACKLOG];
    supervisor.start({ name: host, argv });
  }
  for (const { host, ip } of sinks) await supervisor.waitForPort(host, ip, SMTP_PORT);
};
