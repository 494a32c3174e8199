// Knowledge of addresses that plugins may use; only passes on.
export { cidrProblem, compileCidrs } from "../net/cidr.ts";
export { networkOf, normalizeAddress } from "../net/address.ts";
export { destinationIn, destinationProblem, type DestinationRules } from "../net/destinations.ts";
export { isSafeUrl } from "../net/loopback.ts";
export {
  compileNetworks,
  NEVER,
  type NetworkEntry,
  networkKey,
  NetworkLookup,
  type NetworkTable,
} from "../net/network-table.ts";
export { errorTextOf, quote } from "../net/quote.ts";
