// The rows of recent requests; each row renders once.
import { memo } from "react";
import { inMilliseconds } from "../../parts/quantities.ts";
import type { RequestRow } from "./request-tail.ts";
import { RequestStatus } from "./request-status.tsx";
import { DetailCell } from "../../parts/detail-cell.tsx";

interface Props {
  readonly rows: readonly RequestRow[];
  readonly onOpen: (id: string) => void;
}

export function RequestRows({ rows, onOpen }: Props) {
  return (
    <table
      className="list"
      aria-label="Requests"
      style={
        {
          "--list-columns":
            "5rem 3.8rem minmax(0, 2.4fr) minmax(0, 1.2fr) minmax(0, 0.8fr) 4.4rem minmax(0, 1.3fr)",
        } as object
      }
    >
      <thead>
        <tr className="list-head">
          {["Time", "Status", "Request", "Route and target", "Client", "Duration", "Reasons"].map(
            (title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ),
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Row key={row.id} row={row} onOpen={onOpen} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  readonly row: RequestRow;
  readonly onOpen: (id: string) => void;
}

/** Rows arrive many times a second, so they use plain elements. */
const Row = memo(({ row, onOpen }: RowProps) => {
  const { id, kind, method, host, path, route, target, client, timings, reasons } = row;
  const what = kind === "stream" ? "connection" : method;
  return (
    // The button in the row is the keyboard equivalent.
    <tr className="list-row request-row" onClick={() => onOpen(id)}>
      <td className="list-cell">
        <time dateTime={row.time} title={row.time} className="mono">
          {clockOf(row.time)}
        </time>
        {row.node !== undefined && <span className="is-dim is-small">{row.node}</span>}
      </td>
      <td className="list-cell">
        <RequestStatus request={row} />
      </td>
      <td className="list-cell is-request">
        <button type="button" className="mono request-line">
          {what} {host ?? ""}
          {shortened(path ?? "")}
        </button>
      </td>
      <DetailCell title="Route">
        {route === null ? <span className="is-dim">no route</span> : (route.name ?? "unnamed")}
        {target !== null && (
          <span className="is-dim is-small mono">{target.address ?? "deleted target"}</span>
        )}
      </DetailCell>
      <DetailCell title="Client">
        <span className="mono">{client}</span>
        {row.consumer !== null && <span className="is-dim is-small">{row.consumer}</span>}
      </DetailCell>
      <DetailCell title="Duration">{inMilliseconds(timings.total)}</DetailCell>
      <DetailCell title="Reasons">
        {reasons.length === 0 ? null : <span className="mono">{reasons.join(", ")}</span>}
      </DetailCell>
    </tr>
  );
});

const shortened = (path: string): string => (path.length > 160 ? `${path.slice(0, 160)}…` : path);

const clock = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** The time of day; with the date before today. */
function clockOf(time: string): string {
  const at = new Date(time);
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? clock.format(at) : `${day.format(at)} ${clock.format(at)}`;
}
