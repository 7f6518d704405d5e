import { COMMIT, VERSION } from "./version.ts";

export const LIVENESS_PATH = "/healthz";

/** The response of `GET /healthz` while the process is running. */
export const LIVENESS = { status: "ok", version: VERSION, commit: COMMIT } as const;
