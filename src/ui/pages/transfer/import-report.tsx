// The import report: each part of another program's configuration, most severe first; knows no program.
import { Button, Group, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import { IconAlertTriangle, IconCheck, IconX } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import type { Schemas } from "../../api/resources.ts";
import { Section } from "../../parts/page-layout.tsx";

type Entry = NonNullable<Schemas["Changes"]["report"]>[number];

const levels: readonly {
  readonly level: Entry["level"];
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

export function ImportReport({ report }: { readonly report: readonly Entry[] }) {
  return (
    <Section title="Import report" text="Every part of the source is in one of these lists.">
      <Stack gap="lg">
        {levels.map(({ level, ...look }) => (
          <Level
            key={level}
            {...look}
            entries={report.filter((entry) => entry.level === level)}
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
  readonly entries: readonly Entry[];
  /** Folded when long: no action is required. */
  readonly isLong: boolean;
}

const FEW = 50;

function Level({ title, color, icon, entries, isLong }: LevelProps) {
  const [limit, setLimit] = useState(isLong ? 0 : FEW);
  if (entries.length === 0) return null;
  return (
    <div>
      <Group gap={8} mb={6}>
        <ThemeIcon size="sm" variant="light" color={color} radius="xl">
          {icon}
        </ThemeIcon>
        <Title order={3} size="h5">
          {title} ({entries.length})
        </Title>
      </Group>
      <Stack gap={0}>
        {entries.slice(0, limit).map(({ what, why }) => (
          <div key={`${what} ${why}`} className="report-line">
            <Text size="sm" fw={600} component="div">
              {what}
            </Text>
            <Text size="sm" component="div">
              {why}
            </Text>
          </div>
        ))}
      </Stack>
      {entries.length > limit && (
        <Button size="xs" variant="subtle" mt={4} onClick={() => setLimit(entries.length)}>
          Show {limit === 0 ? "them" : `all ${entries.length}`}
        </Button>
      )}
    </div>
  );
}
