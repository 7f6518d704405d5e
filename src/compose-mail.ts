import type { Config } from "./config.ts";
import { createMailer, type Mailer } from "./net/mailer.ts";

/** The way out for the service's own mail; null when none is set. */
export const mailerOf = ({ notifyRelay: relay, notifyFrom: from }: Config): Mailer | null =>
  relay === null || from === null ? null : createMailer(relay, from);
