// Rules about one object that a schema cannot express: their form, and what they need of other rooms; knows no collection.
import type { Route } from "./route.ts";

/** The problem of a text, worded to follow a field's name; null: none. */
export type TextCheck = (text: string) => string | null;

interface FieldProblem {
  readonly path: string;
  readonly message: string;
}

/** Checks that other rooms provide. */
export interface FieldChecks {
  /** A network or address. */
  readonly cidr: TextCheck;
  /** The same, or the name of a well-known proxy. */
  readonly proxyNetwork: TextCheck;
  /** Host of a target. */
  readonly targetHost: TextCheck;
  /** The Host sent upstream, other than the two keywords. */
  readonly hostHeader: TextCheck;
  /** The name that a target's certificate must be for. */
  readonly serverName: TextCheck;
  /** PEM certificates to trust. */
  readonly authorities: TextCheck;
  /** PEM revocation lists. */
  readonly revocations: TextCheck;
  /** Host names and wildcards that a listener serves. */
  readonly hosts: (hosts: readonly string[]) => readonly FieldProblem[];
  /** An address to listen on. */
  readonly listenAddress: TextCheck;
  /** A protocol of the field Upgrade. */
  readonly upgradeProtocol: TextCheck;
  /** A regular expression that runs on requests. */
  readonly regex: TextCheck;
  /** Hosts, paths and conditions of a route, including its regular expressions, which `regex` checks. */
  readonly route: (route: Route, regex: TextCheck) => readonly FieldProblem[];
}

/** Reports a problem of one object. */
export type Report = (path: string, message: string, status?: 400 | 409) => void;

/** Reports every problem of one object. */
export type ObjectRules<T> = (object: T, checks: FieldChecks, report: Report) => void;

/** Checks each text of the list at `path`. */
export function checkList(
  list: readonly string[],
  check: TextCheck,
  { path, report }: { readonly path: string; readonly report: Report },
): void {
  for (const [index, text] of list.entries()) {
    const problem = check(text);
    if (problem !== null) report(`${path}[${index}]`, problem);
  }
}
