/**
 * The parts of prom-client in use. Its index also loads what a service has no use for: an HTTP client for push gateways, clusters,
 * quantiles and tracing, together 11 MB of memory. `require`, because the parts are CommonJS without types of their own.
 */
type Client = typeof import("prom-client");

export const Counter = require("prom-client/lib/counter") as Client["Counter"];
export const Gauge = require("prom-client/lib/gauge") as Client["Gauge"];
export const Histogram = require("prom-client/lib/histogram") as Client["Histogram"];
export const Registry = require("prom-client/lib/registry") as Client["Registry"];

export type Registry = InstanceType<Client["Registry"]>;
export type Counter<Label extends string = string> = import("prom-client").Counter<Label>;
