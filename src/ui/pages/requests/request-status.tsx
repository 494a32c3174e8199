// The status of a request as a colored word.
import type { RequestRow } from "./request-tail.ts";

const meanings: readonly (readonly [from: number, tone: string, meaning: string])[] = [
  [500, "red", "failed"],
  [400, "yellow", "client error"],
  [300, "blue", "redirect"],
  [200, "teal", "succeeded"],
  [100, "gray", "protocol upgrade"],
];

/** Plain elements, because hundreds change all the time. */
export function RequestStatus({ request }: { readonly request: RequestRow }) {
  const { kind, status, scheme } = request;
  if (kind === "stream") return <span className="request-status is-gray">{scheme}</span>;
  if (status === null)
    return (
      <span className="request-status is-gray" title="The client received no status">
        none
      </span>
    );
  const [, tone, meaning] = meanings.find(([from]) => status >= from) ?? [0, "gray", ""];
  return (
    <span className={`request-status is-${tone}`} title={meaning}>
      {status}
    </span>
  );
}
