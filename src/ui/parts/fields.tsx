// Form inputs for API types other than strings and numbers: tags, lists, pairs; knows no resource.
import {
  ActionIcon,
  Button,
  Group,
  Input,
  NumberInput,
  Stack,
  TagsInput,
  TextInput,
} from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";

/** The result of `form.getInputProps(path)`, and the texts of an input. */
export interface FieldProps<T> {
  readonly label: string;
  readonly description?: ReactNode;
  readonly value?: T;
  readonly onChange?: (value: T) => void;
  readonly error?: ReactNode;
  readonly required?: boolean;
  readonly placeholder?: string;
}

/** Labels of an object. */
export function TagsField({ label, value, ...rest }: FieldProps<string[]>) {
  return (
    <TagsInput label={label} value={value ?? []} splitChars={[",", " "]} clearable {...rest} />
  );
}

/** Several strings, each confirmed with Enter: hosts, networks, methods. */
export function ListField({
  value,
  suggestions = [],
  ...rest
}: FieldProps<string[]> & { readonly suggestions?: readonly string[] }) {
  return (
    <TagsInput value={value ?? []} data={[...suggestions]} splitChars={[","]} clearable {...rest} />
  );
}

type Pairs = Readonly<Record<string, string>>;

/** Names and values, such as headers. Of two rows with one name, the last wins. */
export function KeyValueField(props: FieldProps<Pairs> & { readonly startsWithRow?: boolean }) {
  const { label, description, value = {}, onChange, error, required } = props;
  const [rows, setRows] = useState(() =>
    props.startsWithRow === true && Object.keys(value).length === 0
      ? [{ id: 0, name: "", text: "" }]
      : toRows(value),
  );
  // Changed from outside, such as by discarding a draft.
  const shown = JSON.stringify(toPairs(rows)) === JSON.stringify(value) ? rows : toRows(value);
  const change = (next: readonly Row[]) => {
    setRows(next);
    onChange?.(toPairs(next));
  };
  const edit = (id: number, part: Partial<Row>) =>
    change(shown.map((row) => (row.id === id ? { ...row, ...part } : row)));
  return (
    <Input.Wrapper
      label={label}
      description={description}
      error={error}
      required={required ?? false}
      labelElement="div"
    >
      <Stack gap={6} mt={4} role="group" aria-label={label}>
        {shown.map((row) => (
          <Group key={row.id} gap={6} wrap="nowrap">
            <TextInput
              aria-label={`${label}: name`}
              placeholder="Name"
              value={row.name}
              onChange={(event) => edit(row.id, { name: event.currentTarget.value })}
              style={{ flex: 1 }}
            />
            <TextInput
              aria-label={`${label}: value`}
              placeholder="Value"
              value={row.text}
              onChange={(event) => edit(row.id, { text: event.currentTarget.value })}
              style={{ flex: 2 }}
            />
            <RemoveButton
              label={`Remove ${row.name === "" ? "the row" : row.name}`}
              onClick={() => change(shown.filter(({ id }) => id !== row.id))}
            />
          </Group>
        ))}
        <AddButton onClick={() => setRows([...shown, { id: nextId(shown), name: "", text: "" }])} />
      </Stack>
    </Input.Wrapper>
  );
}

interface Row {
  readonly id: number;
  readonly name: string;
  readonly text: string;
}

const nextId = (rows: readonly Row[]) => Math.max(0, ...rows.map(({ id }) => id)) + 1;
const toRows = (pairs: Pairs): readonly Row[] =>
  Object.entries(pairs).map(([name, text], id) => ({ id, name, text }));
const toPairs = (rows: readonly Row[]): Pairs =>
  Object.fromEntries(rows.filter(({ name }) => name !== "").map(({ name, text }) => [name, text]));

export function RemoveButton({
  label,
  onClick,
}: {
  readonly label: string;
  readonly onClick: () => void;
}) {
  return (
    <ActionIcon variant="subtle" color="gray" aria-label={label} onClick={onClick}>
      <IconX size={16} />
    </ActionIcon>
  );
}

export function AddButton({
  label = "Add",
  onClick,
}: {
  readonly label?: string;
  readonly onClick: () => void;
}) {
  return (
    <Button
      size="xs"
      variant="default"
      leftSection={<IconPlus size={14} />}
      onClick={onClick}
      style={{ alignSelf: "flex-start" }}
    >
      {label}
    </Button>
  );
}

/** Host and port side by side. `host` and `port` are two `getInputProps`. */
export function HostPortField({
  host,
  port,
  label,
}: {
  readonly label: string;
  readonly host: Omit<FieldProps<string>, "label">;
  readonly port: Omit<FieldProps<number | string | null>, "label">;
}) {
  const { value: portValue, onChange: onPort, ...portRest } = port;
  const { onChange: onHost, ...hostRest } = host;
  return (
    <Group gap={6} wrap="nowrap" align="flex-start">
      <TextInput
        label={label}
        placeholder="10.0.0.5"
        style={{ flex: 3 }}
        {...hostRest}
        onChange={(event) => onHost?.(event.currentTarget.value)}
      />
      <NumberInput
        label="Port"
        min={1}
        max={65_535}
        allowDecimal={false}
        hideControls
        placeholder="8080"
        style={{ flex: 1, minWidth: "5rem" }}
        value={portValue ?? ""}
        onChange={(value) => onPort?.(value === "" ? null : Number(value))}
        {...portRest}
      />
    </Group>
  );
}

/** `90000 ms` is `1.5 min`. */
export function inWords(value: number, unit: "ms" | "s"): string {
  const seconds = unit === "ms" ? value / 1000 : value;
  if (seconds < 60) return unit === "ms" && seconds >= 1 ? `${round(seconds)} s` : "";
  if (seconds < 3600) return `${round(seconds / 60)} min`;
  return seconds < 86_400 ? `${round(seconds / 3600)} h` : `${round(seconds / 86_400)} days`;
}

const round = (value: number) => Math.round(value * 10) / 10;
