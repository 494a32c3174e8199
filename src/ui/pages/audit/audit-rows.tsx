// Entries of the audit log as a list; a row is opened by its button, and by a click anywhere on it.
import { Text, UnstyledButton } from "@mantine/core";
import type { Schemas } from "../../api/resources.ts";
import { wordOf } from "../../parts/object-page.ts";
import { RelativeTime, StatusDot } from "../../parts/status.tsx";
import { type RowPosition, VirtualRows } from "../../parts/virtual-rows.tsx";

type Entry = Schemas["AuditEntry"];

interface Props {
  readonly entries: readonly Entry[];
  readonly onOpen: (entry: Entry) => void;
}

const columns = {
  "--list-columns": "8.5rem minmax(0, 1.2fr) minmax(0, 2fr) 6rem minmax(0, 8rem)",
} as object;

export function AuditRows({ entries, onOpen }: Props) {
  const rows = entries.map((entry, index) => ({ entry, index }));
  return (
    <table
      className="list is-stacked"
      aria-label="Audit log"
      aria-rowcount={entries.length + 1}
      style={columns}
    >
      <thead>
        <tr className="list-head">
          {["When", "Who", "Action", "Result", "From"].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <VirtualRows rows={rows} keyOf={({ index }) => String(index)} estimate={42}>
        {({ entry, index }, _, position) => (
          <Row key={index} entry={entry} index={index} position={position} onOpen={onOpen} />
        )}
      </VirtualRows>
    </table>
  );
}

interface RowProps {
  readonly entry: Entry;
  readonly index: number;
  readonly position: RowPosition;
  readonly onOpen: (entry: Entry) => void;
}

function Row({ entry, index, position, onOpen }: RowProps) {
  return (
    <tr
      className="list-row is-link"
      aria-rowindex={index + 2}
      onClick={() => onOpen(entry)}
      {...position}
    >
      <td className="list-cell">
        <Text span size="sm" c="dimmed">
          <RelativeTime at={entry.at} />
        </Text>
      </td>
      <td className="list-cell">{entry.actor}</td>
      <td className="list-cell">
        <UnstyledButton className="row-button">
          {sentenceOf(entry)}{" "}
          <Text span fw={600} inherit>
            {entry.object_name ?? ""}
          </Text>
        </UnstyledButton>
      </td>
      <td className="list-cell">
        <StatusDot state={entry.result} />
      </td>
      <td className="list-cell mono">{entry.address === "" ? "this machine" : entry.address}</td>
    </tr>
  );
}

/** The action in words; for a refused one, the attempted action. */
export function sentenceOf({ action, kind, result }: Entry): string {
  const verb = result === "ok" ? verbOf(action) : action.replaceAll("_", " ");
  return WITHOUT_OBJECT.has(action) ? verb : `${verb} ${wordOf(kind)}`;
}

/** These need no object. */
const WITHOUT_OBJECT: ReadonlySet<string> = new Set(["login", "logout"]);

const verbs: Readonly<Record<string, string>> = {
  create: "created",
  update: "changed",
  delete: "deleted",
  export: "exported",
  login: "signed in",
  logout: "signed out",
};

export const verbOf = (action: string): string => verbs[action] ?? action.replaceAll("_", " ");
