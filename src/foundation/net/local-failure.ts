import { closeSync, openSync } from "node:fs";

/** Errors that are this machine's: no descriptor, no port, no such local address, or a local firewall that forbids it. */
const LOCAL_ERRORS: ReadonlySet<string> = new Set([
  ...["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"],
  ...["EADDRNOTAVAIL", "EADDRINUSE", "EACCES", "EPERM", "EAFNOSUPPORT"],
]);
/** Failures that pass as soon as something else is closed. */
const SHORTAGES: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"]);

/** The system's name of an error, such as `EMFILE`; empty when it has none. */
export const errorCode = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** Whether an error of opening a socket is a problem of this machine only. */
export const isLocalError = (code: string): boolean => LOCAL_ERRORS.has(code);

/** Whether the machine is short of descriptors or buffers, so that the same may succeed in a moment. */
export const isShortage = (code: string): boolean => SHORTAGES.has(code);

/**
 * Whether this process can open no further file or socket. The platform reports a TCP connect without a descriptor as a
 * refusal (ECONNREFUSED), so a refusal counts only if a descriptor is available.
 */
export const isOutOfDescriptors = (): boolean => {
  try {
    closeSync(openSync("/dev/null", "r"));
    return false;
  } catch (error) {
    return isShortage(errorCode(error));
  }
};
