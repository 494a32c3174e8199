// Networks on the command line: CIDR, `private` and `any`; knows no command.
import { allNetworks, privateNetworks } from "../control/admin-network.ts";
import { cidrProblem } from "../net/cidr.ts";
import { UsageError } from "./usage-error.ts";

/** The values of NETWORKS, for the help of flags. */
export const NETWORK_WORDS = "CIDR[,CIDR], private (RFC 1918, ULA and loopback) or any";

/** The networks in texts, each one or several with commas; invalid entries stay as they are. */
export function expandNetworks(texts: readonly string[]): readonly string[] {
  return [...new Set(wordsOf(texts).flatMap(networksOf))];
}

/** The same; throws a UsageError that names the flag. */
export function decodeNetworks(flag: string, texts: readonly string[]): readonly string[] {
  const words = wordsOf(texts);
  if (words.includes("any") && words.length > 1)
    throw new UsageError(`--${flag}: any must stand alone`);
  const networks = expandNetworks(texts);
  const wrong = networks.find((network) => cidrProblem(network) !== null);
  if (wrong === undefined) return networks;
  throw new UsageError(`--${flag}: "${wrong}" ${cidrProblem(wrong)}, or private, or any`);
}

const wordsOf = (texts: readonly string[]) =>
  texts.flatMap((text) => text.split(",")).map((word) => word.trim());

function networksOf(word: string): readonly string[] {
  if (word === "private") return privateNetworks;
  return word === "any" ? allNetworks : [word];
}
