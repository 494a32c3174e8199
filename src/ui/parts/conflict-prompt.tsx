// Shows a concurrent change field by field, to choose between both versions; knows no resource.
import { Button, Code, Group, Modal, Radio, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { type Document, differences, isSame, valueAt, withValueAt } from "../api/merge-patch.ts";

/** Three versions of one object. */
export interface Conflict {
  /** The version that the form was opened with. */
  readonly base: Document;
  readonly mine: Document;
  /** The stored version. */
  readonly theirs: Document;
  /** ETag of `theirs`. */
  readonly etag: string | null;
}

interface Props {
  readonly conflict: Conflict | null;
  readonly onCancel: () => void;
  readonly onMerged: (merged: Document, conflict: Conflict) => void;
}

type Side = "mine" | "theirs";

export function ConflictPrompt({ conflict, onCancel, onMerged }: Props) {
  return (
    <Modal opened={conflict !== null} onClose={onCancel} size="xl" title="Concurrent change">
      {conflict !== null && <Merge conflict={conflict} onCancel={onCancel} onMerged={onMerged} />}
    </Modal>
  );
}

function Merge({ conflict, onCancel, onMerged }: Props & { readonly conflict: Conflict }) {
  const [choices, setChoices] = useState<Readonly<Record<string, Side>>>({});
  const paths = contested(conflict);
  const sideOf = (path: readonly string[]) => choices[path.join(".")] ?? usual(conflict, path);
  const merged = () =>
    paths.reduce(
      (document, path) =>
        sideOf(path) === "mine"
          ? document
          : withValueAt(document, path, valueAt(conflict.theirs, path)),
      conflict.mine,
    );
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        Another user changed this object. Choose a value for each field; fields that only one of you
        changed are merged.
      </Text>
      {paths.map((path) => (
        <Radio.Group
          key={path.join(".")}
          label={path.join(".")}
          value={sideOf(path)}
          onChange={(side) =>
            setChoices((before) => ({
              ...before,
              [path.join(".")]: side === "mine" ? "mine" : "theirs",
            }))
          }
        >
          <Stack gap={6} mt={4}>
            <Version side="mine" label="Keep mine" value={valueAt(conflict.mine, path)} />
            <Version side="theirs" label="Use theirs" value={valueAt(conflict.theirs, path)} />
          </Stack>
        </Radio.Group>
      ))}
      <Group justify="flex-end">
        <Button variant="default" onClick={onCancel}>
          Back to the form
        </Button>
        <Button onClick={() => onMerged(merged(), conflict)}>Save again</Button>
      </Group>
    </Stack>
  );
}

interface VersionProps {
  readonly side: Side;
  readonly label: string;
  readonly value: unknown;
}

function Version({ side, label, value }: VersionProps) {
  const text = value === undefined ? "(not set)" : JSON.stringify(value);
  return (
    <Radio
      value={side}
      label={
        <Group gap="xs" align="baseline">
          <Text size="sm">{label}</Text>
          <Code style={{ overflowWrap: "anywhere" }}>{text}</Code>
        </Group>
      }
    />
  );
}

/** Fields that they changed and whose value differs from mine. */
export const contested = ({ base, mine, theirs }: Conflict): (readonly string[])[] =>
  differences(base, theirs).filter((path) => !isSame(valueAt(mine, path), valueAt(theirs, path)));

/** Fields that only they changed default to theirs. */
const usual = ({ base, mine }: Conflict, path: readonly string[]): Side =>
  isSame(valueAt(base, path), valueAt(mine, path)) ? "theirs" : "mine";
