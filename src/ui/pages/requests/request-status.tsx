// The status of a request as a coloured word; knows nothing else of it.
import type { RequestRow } from "./request-tail.ts";

const meanings: readonly (readonly [from: number, tone: string, meaning: string])[] = [
  [500, "red", "failed"],
  [400, "yellow", "refused or not found"],
  [300, "blue", "sent elsewhere"],
  [200, "teal", "succeeded"],
  [100, "gray", "switched to another protocol"],
];

/** Plain elements: there are hundreds of them, and new ones all the time. */
export function RequestStatus({ request }: { readonly request: RequestRow }) {
  const { kind, status, scheme } = request;
  if (kind === "stream") return <span className="request-status is-gray">{scheme}</span>;
  if (status === null)
    return (
      <span className="request-status is-gray" title="The client was sent no status">
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
