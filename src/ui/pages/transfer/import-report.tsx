// The import report: each part of another program's configuration, most severe first; knows no program.
import { Button, Group, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import { IconAlertTriangle, IconCheck, IconX } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import type { Schemas } from "../../api/resources.ts";
import { Section } from "../../parts/page-layout.tsx";

type ReportGroup = NonNullable<Schemas["Changes"]["report_groups"]>[number];

const levels: readonly {
  readonly level: ReportGroup["level"];
  readonly title: string;
  readonly color: string;
  readonly icon: ReactNode;
}[] = [
  {
    level: "omitted",
    title: "Not imported",
    color: "red",
    icon: <IconX size={14} aria-hidden="true" />,
  },
  {
    level: "changed",
    title: "Imported with differences",
    color: "yellow",
    icon: <IconAlertTriangle size={14} aria-hidden="true" />,
  },
  {
    level: "imported",
    title: "Imported",
    color: "teal",
    icon: <IconCheck size={14} aria-hidden="true" />,
  },
];

/** Those that need attention come first. */
const MANY = 200;

type HostResult = NonNullable<Schemas["Changes"]["report_hosts"]>[number];

const states: Readonly<Record<HostResult["state"], string>> = {
  closed: "Closed",
  partly_closed: "Partly closed",
  changed: "Changed",
  imported: "Imported",
};

interface ReportProps {
  readonly groups: readonly ReportGroup[];
  readonly hosts: readonly HostResult[];
}

export function ImportReport({ groups, hosts }: ReportProps) {
  return (
    <Section title="Import report" text="Every part of the source is in one of these lists.">
      <Stack gap="lg">
        {hosts.length > 0 && (
          <Stack gap={0}>
            {hosts.slice(0, MANY).map(({ host, state, why }) => (
              <div key={host} className="report-line">
                <Text size="sm" fw={600} component="div">
                  {host}
                </Text>
                <Text size="sm" component="div">
                  {states[state]}
                  {why !== null && `: ${why}`}
                </Text>
              </div>
            ))}
          </Stack>
        )}
        {levels.map(({ level, ...look }) => (
          <Level
            key={level}
            {...look}
            groups={groups.filter((group) => group.level === level)}
            isLong={level === "imported"}
          />
        ))}
      </Stack>
    </Section>
  );
}

interface LevelProps {
  readonly title: string;
  readonly color: string;
  readonly icon: ReactNode;
  readonly groups: readonly ReportGroup[];
  /** Folded when long: no action is required. */
  readonly isLong: boolean;
}

const FEW = 50;

function Level({ title, color, icon, groups, isLong }: LevelProps) {
  const [limit, setLimit] = useState(isLong ? 0 : FEW);
  if (groups.length === 0) return null;
  const objects = groups.reduce((sum, { what }) => sum + what.length, 0);
  return (
    <div>
      <Group gap={8} mb={6}>
        <ThemeIcon size="sm" variant="light" color={color} radius="xl">
          {icon}
        </ThemeIcon>
        <Title order={3} size="h5">
          {title} ({objects})
        </Title>
      </Group>
      <Stack gap={0}>
        {groups.slice(0, limit).map(({ what, why }) => (
          <div key={why} className="report-line">
            <Objects names={what} />
            <Text size="sm" component="div">
              {why}
            </Text>
          </div>
        ))}
      </Stack>
      {groups.length > limit && (
        <Button size="xs" variant="subtle" mt={4} onClick={() => setLimit(groups.length)}>
          Show {limit === 0 ? "them" : `all ${groups.length}`}
        </Button>
      )}
    </div>
  );
}

const FEW_NAMES = 8;

/** The objects with the same result. */
function Objects({ names }: { readonly names: readonly string[] }) {
  const [isWhole, setWhole] = useState(names.length <= FEW_NAMES + 1);
  const shown = isWhole ? names : names.slice(0, FEW_NAMES);
  return (
    <div>
      {shown.map((name) => (
        <Text key={name} size="sm" fw={600} component="div">
          {name}
        </Text>
      ))}
      {!isWhole && (
        <Button size="compact-xs" variant="subtle" onClick={() => setWhole(true)}>
          Show {names.length - FEW_NAMES} more
        </Button>
      )}
    </div>
  );
}
