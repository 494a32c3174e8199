// Requests a token from an address over HTTP, as a CA would, and reports which server responds; knows no order.
import type { Fetch } from "../dialer/dialer.ts";
import { isIP } from "node:net";
import { readText, reasonOf } from "../control/outgoing-request.ts";
import { quote } from "../net/quote.ts";

/** A token and the gateway's response to it. */
export interface ProbeProof {
  readonly token: string;
  readonly answer: string;
}

/** Makes all workers serve it; the function removes it. */
export type ShowProbe = (proof: ProbeProof) => Promise<() => void>;

export type ProbeOutcome =
  | { readonly kind: "reached" }
  /** Another server responds. */
  | { readonly kind: "other"; readonly message: string }
  /** No response, or a proxy in between: other networks may see another result. */
  | { readonly kind: "unclear"; readonly message: string };

const TIMEOUT_MS = 5000;
const MAX_BYTES = 4096;

export async function probe(
  proof: ProbeProof,
  at: {
    readonly name: string;
    readonly address: string;
    readonly port: number;
    readonly fetch: Fetch;
  },
): Promise<ProbeOutcome> {
  const host = isIP(at.address) === 6 ? `[${at.address}]` : at.address;
  const where = `${at.address}, port ${at.port},`;
  try {
    const response = await at.fetch(
      `http://${host}:${at.port}/.well-known/acme-challenge/${proof.token}`,
      {
        headers: { host: at.port === 80 ? at.name : `${at.name}:${at.port}` },
        redirect: "manual",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      },
    );
    const text = await readText(response, MAX_BYTES);
    if (response.status === 200 && text?.trim() === proof.answer) return { kind: "reached" };
    if (response.status >= 300 && response.status < 400) {
      const to = quote(response.headers.get("location"), []);
      return {
        kind: "unclear",
        message: `${where} redirects to ${to}: it must reach this gateway`,
      };
    }
    return {
      kind: "other",
      message: `${where} returns status ${response.status} from another server than this gateway`,
    };
  } catch (error) {
    return { kind: "unclear", message: `${where} ${reasonOf(error, { timeoutMs: TIMEOUT_MS })}` };
  }
}
