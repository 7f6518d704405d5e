import { LoadOnce } from "../foundation/base/load-once.ts";
import type { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { createUrlOfRequest } from "../foundation/http/request-target.ts";
import type { Service, ServiceOptions } from "./compose.ts";
import type { HttpApplication } from "./http-application.ts";
import { createPolicyApplication } from "./policy-application.ts";

const API_PATH = /^\/(v1|metrics|healthz|readyz|openapi\.json|docs|mcp|widget\.js)(\/|$)/;

/** `host` is the Host header; empty without one. */
export type ApplicationOf = (path: string, host?: string) => HttpApplication | Promise<HttpApplication>;

/**
 * Finds the application that a path belongs to. The API and the dashboard are two, each loaded by its first request: most of the
 * code is theirs, and a service that only monitors needs neither. MTA-STS policies need none of both. `clients` names those that the server hears from.
 */
export const createApplications = (
  service: Service,
  options: ServiceOptions,
  clients: ClientAddresses,
): ApplicationOf => {
  const urlOf = createUrlOfRequest(options.config.baseUrl, options.baseUrl);
  service.usage.formGate.attach(clients, urlOf);
  const api = new LoadOnce(async () => (await import("./api.ts")).openApi(service, options));
  const pages = new LoadOnce(async () => (await import("./pages.ts")).openPages(service, options, clients));
  const policies = createPolicyApplication(service.dmarc.servedPolicies, clients);
  return (path, host = "") => (policies.serves(path, host) ? policies : (API_PATH.test(path) ? api : pages).get());
};
