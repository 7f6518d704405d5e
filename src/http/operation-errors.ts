import type { ErrorCode } from "../base/errors.ts";

/** What a route with a JSON body may answer beside its own errors. */
export const BODY_ERRORS: readonly ErrorCode[] = [
  "Request body must be valid JSON",
  "Invalid request body",
  "payload_too_large",
  "unsupported_media_type",
];
