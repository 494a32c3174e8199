// The rows of recent requests; each row renders once.
import { memo } from "react";
import { inMilliseconds } from "../../parts/quantities.ts";
import type { RequestRow } from "./request-tail.ts";
import { RequestStatus } from "./request-status.tsx";

interface Props {
  readonly rows: readonly RequestRow[];
  readonly onOpen: (id: string) => void;
}

const TITLES = [
  ...["Time", "Status", "Method", "Request", "Route", "Target", "Client", "Duration"],
  "Reasons",
];

export function RequestRows({ rows, onOpen }: Props) {
  return (
    <table className="list requests" aria-label="Requests">
      <thead>
        <tr className="list-head">
          {TITLES.map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
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

/** Rows arrive many times a second, so they use plain elements. One line each; the drawer shows what does not fit. */
const Row = memo(({ row, onOpen }: RowProps) => {
  const { id, kind, method, host, path, route, target, client, timings, reasons } = row;
  const isStream = kind === "stream";
  const where = isStream ? "connection" : `${host ?? ""}${shortened(path ?? "")}`;
  const routeName = route === null ? "no route" : (route.name ?? "unnamed");
  const address = target === null ? "" : (target.address ?? "deleted target");
  const caller = row.consumer === null ? client : `${client} ${row.consumer}`;
  const why = reasons.join(", ");
  return (
    // The button in the row is the keyboard equivalent.
    <tr className="list-row request-row" onClick={() => onOpen(id)}>
      <td className="list-cell is-line">
        <time dateTime={row.time} title={row.time} className="mono">
          {clockOf(row.time)}
        </time>
        {row.node !== undefined && (
          <>
            {" "}
            <span className="is-minor">{row.node}</span>
          </>
        )}
      </td>
      <td className="list-cell">
        <RequestStatus request={row} />
      </td>
      <td className="list-cell is-line mono">{method}</td>
      <td className="list-cell is-line is-request">
        <button
          type="button"
          className="mono request-line"
          aria-label={isStream ? where : `${method} ${where}`}
          title={where}
        >
          {where}
        </button>
      </td>
      <td
        className={`list-cell is-line is-extra ${route === null ? "is-dim" : ""}`}
        title={routeName}
      >
        {routeName}
      </td>
      <td className="list-cell is-line is-extra is-dim mono" title={address}>
        {address}
      </td>
      <td className="list-cell is-line is-extra mono" title={caller}>
        {caller}
      </td>
      <td className="list-cell is-line is-duration">{inMilliseconds(timings.total)}</td>
      <td className="list-cell is-line is-reasons mono" title={why}>
        {why}
      </td>
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
