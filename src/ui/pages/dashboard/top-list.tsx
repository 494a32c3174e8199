// The routes, services and targets with the most requests in the selected range; reads no statistics itself.
import { Anchor, SegmentedControl, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Section } from "../../parts/page-layout.tsx";
import { TrafficTable } from "./traffic-table.tsx";

type History = Schemas["Stats"]["history"];
type Row = History["by_route"][number];

const kinds = [
  { value: "by_route", label: "Routes" },
  { value: "by_service", label: "Services" },
  { value: "by_target", label: "Targets" },
] as const;
type Kind = (typeof kinds)[number]["value"];

const SHOWN = 8;

export function TopList({ history }: { readonly history: History }) {
  const [kind, setKind] = useState<Kind>("by_route");
  const rows = history[kind].slice(0, SHOWN);
  return (
    <Section
      title="Top traffic"
      actions={
        <SegmentedControl
          size="xs"
          aria-label="Top traffic by"
          data={kinds.map((one) => ({ ...one }))}
          value={kind}
          onChange={(value) => setKind(value as Kind)}
        />
      }
    >
      {rows.length === 0 ? (
        <Text size="sm" c="dimmed">
          No traffic in this range.
        </Text>
      ) : (
        <TrafficTable
          title="Top traffic"
          rows={rows.map((row) => ({ ...row, key: row.id, label: <Name row={row} kind={kind} /> }))}
        />
      )}
    </Section>
  );
}

const special: Readonly<Record<string, string>> = {
  _none: "no route matched",
  _other: "others",
};

function Name({ row: { id, name }, kind }: { readonly row: Row; readonly kind: Kind }) {
  if (special[id] !== undefined)
    return (
      <Text size="sm" c="dimmed">
        {special[id]}
      </Text>
    );
  if (kind === "by_target")
    return (
      <Text size="sm" className="mono">
        {name}
      </Text>
    );
  const page = kind === "by_route" ? "routes" : "services";
  return (
    <Anchor component={Link} href={pagePath(page, id)} size="sm">
      {name === "" ? id : name}
    </Anchor>
  );
}
