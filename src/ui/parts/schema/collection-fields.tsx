// Schema form fields with several values: lists of objects, maps; knows no plugin.
import { ActionIcon, Box, Group, Input, Paper, Stack, Text, TextInput } from "@mantine/core";
import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import { useState } from "react";
import { isDocument } from "../../api/merge-patch.ts";
import { AddButton, KeyValueField, RemoveButton } from "../fields.tsx";
import {
  type FieldInfo,
  type FieldInputProps,
  useErrorAt,
  useFormFacts,
  useTexts,
  InnerField,
  memberInfo,
} from "./field-frame.tsx";
import { type JsonSchema, shapeOf, toSingular, memberOf } from "./shape.ts";
import { isShown, withDefaults, withMember } from "./values.ts";

/** The initial value of a new element. */
export function startOf(whole: JsonSchema): unknown {
  const { shape, schema } = shapeOf(whole);
  if (shape === "object" || shape === "picked" || shape === "pairs" || shape === "map") return {};
  if (shape === "items") return [];
  if (shape === "union") return "";
  if (shape === "choice" && schema.default === undefined) return schema.enum?.[0] ?? "";
  return schema.default ?? (shape === "flag" ? true : shape === "json" ? {} : "");
}

export function ItemsField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
  const { isReadOnly, isPage } = useFormFacts();
  const { schema } = shapeOf(info.schema);
  const isRows = isPage && schema.form?.input === "row";
  const Each = isRows ? Row : Item;
  const initial = Array.isArray(schema.default) ? (schema.default as unknown[]) : [];
  const items = Array.isArray(value) ? (value as unknown[]) : value === undefined ? initial : [];
  const [keys, setKeys] = useState<readonly number[]>([]);
  // The list may have changed from outside.
  const own = items.map((_, index) => keys[index] ?? index + 1);
  const change = (next: readonly unknown[], nextKeys: readonly number[]) => {
    setKeys(nextKeys);
    onChange(next);
  };
  const singular = toSingular(info.label);
  const item = schema.items ?? {};
  const examples = Array.isArray(info.example) ? (info.example as unknown[]) : [];
  return (
    <Input.Wrapper
      {...texts}
      {...(schema.form?.input === "bare" ? { label: undefined } : {})}
      labelElement="div"
    >
      <Stack gap="sm" mt={6}>
        {items.map((each, index) => (
          <Each
            key={own[index]}
            title={isRows ? info.label : `${singular} ${index + 1}`}
            index={index}
            count={items.length}
            info={{
              path: `${info.path}.${index}`,
              name: info.name,
              label: singular,
              schema: item,
              isNeeded: true,
              example: examples[index] ?? examples[0],
            }}
            value={each}
            onChange={(next) => change(items.with(index, next ?? startOf(item)), own)}
            onRemove={() => change(items.toSpliced(index, 1), own.toSpliced(index, 1))}
            onMove={(by) => change(swap(items, index, index + by), swap(own, index, index + by))}
          />
        ))}
        {!isReadOnly && (
          <AddButton
            label={`Add ${withArticle(singular)}`}
            onClick={() => change([...items, startOf(item)], [...own, Math.max(0, ...own) + 1])}
          />
        )}
      </Stack>
    </Input.Wrapper>
  );
}

const withArticle = (word: string): string => {
  const small = /^[A-Z][a-z]/.test(word) ? word.toLowerCase() : word;
  return `${/^[aeio]/i.test(small) ? "an" : "a"} ${small}`;
};

function swap<T>(list: readonly T[], one: number, other: number): readonly T[] {
  const [a, b] = [list[one], list[other]];
  if (a === undefined || b === undefined) return list;
  return list.with(one, b).with(other, a);
}

interface ItemProps extends FieldInputProps {
  readonly title: string;
  readonly index: number;
  readonly count: number;
  readonly onRemove: () => void;
  readonly onMove: (by: number) => void;
}

function Item({ title, index, count, info, value, onChange, onRemove, onMove }: ItemProps) {
  const { isReadOnly } = useFormFacts();
  const error = useErrorAt(info.path);
  const { shape } = shapeOf(info.schema);
  const isObject = shape === "object" || shape === "picked";
  return (
    <Paper withBorder p="sm" component="fieldset" aria-label={title} m={0} miw={0}>
      <Group justify="space-between" mb={isObject ? "xs" : 4} wrap="nowrap">
        <Text size="sm" fw={600}>
          {title}
        </Text>
        {!isReadOnly && (
          <Group gap={2} wrap="nowrap">
            {index > 0 && <MoveButton label={`Move ${title} up`} isUp onClick={() => onMove(-1)} />}
            {index < count - 1 && (
              <MoveButton label={`Move ${title} down`} onClick={() => onMove(1)} />
            )}
            <RemoveButton label={`Remove ${title}`} onClick={onRemove} />
          </Group>
        )}
      </Group>
      {isObject && error !== null && <Input.Error mb="xs">{error}</Input.Error>}
      <InnerField info={info} value={value} onChange={onChange} isBare />
    </Paper>
  );
}

/** The members of an object side by side, without their labels. */
function Row({ title, index, info, value, onChange, onRemove }: ItemProps) {
  const { isReadOnly } = useFormFacts();
  const error = useErrorAt(info.path);
  const members = withDefaults(info.schema, value);
  const entered = isDocument(value) ? value : {};
  const shown = Object.entries(info.schema.properties ?? {}).filter(([, member]) =>
    isShown(member, members),
  );
  return (
    <Box data-field={info.path}>
      <Group gap={6} align="flex-start" wrap="nowrap">
        <Group gap={6} align="flex-start" style={{ flex: 1 }}>
          {shown.map(([name]) => {
            const member = memberInfo(info, name);
            const label = `${title}: ${member.label.toLowerCase()} ${index + 1}`;
            return (
              <Box key={name} style={{ flex: "1 1 9rem" }}>
                <InnerField
                  info={{ ...member, label, isInRow: true }}
                  value={entered[name]}
                  onChange={(next) => onChange(withMember(entered, name, next))}
                />
              </Box>
            );
          })}
        </Group>
        {!isReadOnly && <RemoveButton label={`Remove ${title}: ${index + 1}`} onClick={onRemove} />}
      </Group>
      {error !== null && <Input.Error>{error}</Input.Error>}
    </Box>
  );
}

interface MoveProps {
  readonly label: string;
  readonly isUp?: boolean;
  readonly onClick: () => void;
}

function MoveButton({ label, isUp = false, onClick }: MoveProps) {
  return (
    <ActionIcon variant="subtle" color="gray" aria-label={label} onClick={onClick}>
      {isUp ? <IconArrowUp size={16} /> : <IconArrowDown size={16} />}
    </ActionIcon>
  );
}

export function PairsField({
  info,
  value,
  onChange,
  startsWithRow = false,
}: FieldInputProps & {
  /** Whether an empty map shows a row to type in. */
  readonly startsWithRow?: boolean;
}) {
  const { withAsterisk, description } = useTexts(info);
  const error = useErrorAt(info.path, true);
  const initial = isDocument(info.schema.default) ? info.schema.default : {};
  const pairs = (isDocument(value) ? value : initial) as Record<string, string>;
  return (
    <KeyValueField
      label={info.label}
      description={description}
      error={error}
      required={withAsterisk}
      value={pairs}
      startsWithRow={startsWithRow}
      onChange={(next) =>
        onChange(
          Object.keys(next).length === 0 && info.schema.default === undefined ? undefined : next,
        )
      }
    />
  );
}

/** A map whose values are more than strings. */
export function MapField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
  const { isReadOnly, isStored } = useFormFacts();
  const { schema } = shapeOf(info.schema);
  const initial = isDocument(schema.default) ? schema.default : {};
  const entries = Object.entries(isDocument(value) ? value : initial);
  const rows = entries.map(([name, each], index) => ({ index, name, each }));
  const unseen = useUnseenError(
    info.path,
    entries.map(([name]) => name),
  );
  const inner = memberOf(schema) ?? {};
  const isSecret = inner["x-kind"] === "secret";
  const exampleOf = (name: string) =>
    isDocument(info.example) ? (info.example[name] ?? Object.values(info.example)[0]) : undefined;
  const set = (next: readonly (readonly [string, unknown])[]) =>
    onChange(
      next.length === 0 && schema.default === undefined ? undefined : Object.fromEntries(next),
    );
  return (
    <Input.Wrapper {...texts} error={texts.error ?? unseen} labelElement="div">
      <Stack gap="sm" mt={6}>
        {isSecret && isStored && (
          <Text size="xs" c="dimmed">
            Stored values are not shown and stay unchanged. Add a name to set or replace its value.
          </Text>
        )}
        {rows.map(({ index, name, each }) => (
          <Entry
            key={`${index} of ${entries.length}`}
            info={innerInfo(info, { name, schema: inner, example: exampleOf(name) })}
            of={info.label}
            name={name}
            value={each}
            onName={(next) => set(entries.with(index, [next, each]))}
            onChange={(next) =>
              set(
                entries.with(index, [
                  name,
                  next ?? (shapeOf(inner).isNullable ? null : startOf(inner)),
                ]),
              )
            }
            onRemove={() => set(entries.toSpliced(index, 1))}
          />
        ))}
        {!isReadOnly && (
          <AddButton
            onClick={() =>
              set([...entries, [newName(entries.map(([name]) => name)), startOf(inner)]])
            }
          />
        )}
      </Stack>
    </Input.Wrapper>
  );
}

/** The API error of a hidden stored secret; null: none. */
function useUnseenError(path: string, names: readonly string[]): string | null {
  const { errors } = useFormFacts();
  const inner = Object.entries(errors)
    .filter(([at]) => at.startsWith(`${path}.`))
    .map(([at, text]) => ({ at: at.slice(path.length + 1), text }));
  const isShown = (at: string) => names.some((name) => at === name || at.startsWith(`${name}.`));
  const found = inner.find(({ at }) => !isShown(at));
  return found === undefined ? null : `${found.at}: ${found.text}`;
}

const newName = (taken: readonly string[]): string => {
  const isFree = (name: string) => !taken.includes(name);
  const numbers = [1, ...taken.map((_, index) => index + 2)];
  return isFree("") ? "" : (numbers.map((n) => `name-${n}`).find(isFree) ?? "");
};

interface Part {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly example: unknown;
}

const innerInfo = (info: FieldInfo, { name, schema, example }: Part): FieldInfo => ({
  path: `${info.path}.${name}`,
  name,
  schema,
  example,
  label: "Value",
  isNeeded: false,
});

/** Name and value side by side. */
function EntryRow({ info, of, name, value, onName, onChange, onRemove }: EntryProps) {
  const { isReadOnly } = useFormFacts();
  return (
    <Group gap={6} wrap="nowrap" align="flex-start" maw={480}>
      <TextInput
        aria-label={`${of}: name`}
        placeholder="Name"
        style={{ flex: 1 }}
        disabled={isReadOnly}
        value={name}
        onChange={({ currentTarget: { value: next } }) => onName(next)}
      />
      <Box style={{ flex: 1, minWidth: 0 }}>
        <InnerField
          info={{ ...info, label: `${of}: value`, isInRow: true }}
          value={value}
          onChange={onChange}
        />
      </Box>
      {!isReadOnly && (
        <RemoveButton label={`Remove ${name === "" ? "it" : name}`} onClick={onRemove} />
      )}
    </Group>
  );
}

interface EntryProps extends FieldInputProps {
  /** Label of the map. */
  readonly of: string;
  readonly name: string;
  readonly onName: (name: string) => void;
  readonly onRemove: () => void;
}

function Entry(props: EntryProps) {
  const { info, name, value, onName, onChange, onRemove } = props;
  const { isReadOnly, isPage } = useFormFacts();
  const { shape } = shapeOf(info.schema);
  const isLarge = ["object", "picked", "items", "map"].includes(shape);
  if (isPage && !isLarge) return <EntryRow {...props} />;
  return (
    <Paper withBorder p="sm" component="fieldset" aria-label={name} m={0} miw={0}>
      <Group align="flex-start" gap="sm" wrap={isLarge ? "wrap" : "nowrap"}>
        <TextInput
          label="Name"
          style={{ flex: isLarge ? "1 1 60%" : 1 }}
          miw={0}
          disabled={isReadOnly}
          value={name}
          onChange={({ currentTarget: { value: next } }) => onName(next)}
        />
        {!isLarge && (
          <Box style={{ flex: 2, minWidth: 0 }}>
            <InnerField info={info} value={value} onChange={onChange} />
          </Box>
        )}
        {!isReadOnly && (
          <Box pt={26}>
            <RemoveButton label={`Remove ${name === "" ? "it" : name}`} onClick={onRemove} />
          </Box>
        )}
      </Group>
      {isLarge && (
        <Box mt="sm">
          <InnerField info={info} value={value} onChange={onChange} isBare />
        </Box>
      )}
    </Paper>
  );
}
