// The form of a credential: created with a generated or entered secret, edited without it; stores no secret.
import {
  PasswordInput,
  Radio,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { ApiError } from "../../api/error.ts";
import { FormDrawer } from "../../parts/form-page.tsx";
import { HelpText } from "../../parts/page-layout.tsx";
import { type Credential, isShared, kindOf, kinds, titleOf } from "./credential-kinds.ts";
import { ExpiryField } from "./expiry-field.tsx";

interface Values {
  readonly type: string;
  readonly name: string;
  readonly identifier: string;
  readonly algorithm: string | null;
  readonly public_key: string;
  readonly isOwn: boolean;
  readonly secret: string;
  readonly expires_at: string | null;
  readonly enabled: boolean;
}

const toValues = (stored: Credential | null): Values => ({
  type: stored?.type ?? "key",
  name: stored?.name ?? "",
  identifier: stored?.identifier ?? "",
  algorithm: stored?.algorithm ?? null,
  public_key: stored?.public_key ?? "",
  isOwn: false,
  secret: "",
  expires_at: stored?.expires_at ?? null,
  enabled: stored?.enabled ?? true,
});

const orNull = (text: string): string | null => (text === "" ? null : text);

function toBody(values: Values, stored: Credential | null): Record<string, unknown> {
  const { type, isOwn, secret, name, identifier, algorithm, public_key: key, ...rest } = values;
  const kind = kindOf(type);
  return {
    ...rest,
    name: orNull(name),
    ...(stored === null ? { type } : {}),
    ...(kind.identifier === null ? {} : { identifier: orNull(identifier) }),
    ...(kind.algorithms.length === 0 ? {} : { algorithm }),
    ...(isShared(algorithm) ? {} : { public_key: orNull(key) }),
    ...(isOwn && isShared(algorithm) ? { secret } : {}),
  };
}

interface Props {
  readonly consumerId: string;
  /** Null: creates one. */
  readonly stored: Credential | null;
  readonly onClose: () => void;
  /** Receives the generated secret, if any. */
  readonly onDone: (made: Credential) => void;
}

export function CredentialDrawer({ consumerId, stored, onClose, onDone }: Props) {
  const connection = useConnection();
  const [values, setValues] = useState(() => toValues(stored));
  const [failure, setFailure] = useState<Error | null>(null);
  const { mutateAsync, isPending } = useChange<Credential>({
    send: () =>
      stored === null
        ? connection.send(`/consumers/${consumerId}/credentials`, {
            method: "POST",
            body: toBody(values, stored),
          })
        : connection.send(`/credentials/${stored.id}`, {
            method: "PATCH",
            body: toBody(values, stored),
          }),
    touches: ["credentials"],
    done: (made) => `Credential ${titleOf(made)} ${stored === null ? "created" : "saved"}`,
    showsErrors: true,
  });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    // This form is nested in the consumer's form.
    event.stopPropagation();
    setFailure(null);
    try {
      onDone((await mutateAsync()).value);
    } catch (error) {
      setFailure(error as Error);
    }
  };
  const field = failure instanceof ApiError ? failure.field : null;
  const isPlaced = field !== null && field in values;
  return (
    <FormDrawer
      opened
      onClose={onClose}
      title={stored === null ? "New credential" : `Edit ${titleOf(stored)}`}
      label={stored === null ? "Create" : "Save"}
      onSubmit={(event) => void submit(event)}
      isSaving={isPending}
      failure={isPlaced ? null : failure}
    >
      <Fields
        values={values}
        isNew={stored === null}
        errorOf={(name) => (field === name && failure instanceof ApiError ? failure.detail : null)}
        set={(part) => setValues({ ...values, ...part })}
      />
    </FormDrawer>
  );
}

interface FieldsProps {
  readonly values: Values;
  readonly isNew: boolean;
  readonly errorOf: (name: keyof Values) => string | null;
  readonly set: (part: Partial<Values>) => void;
}

function Fields({ values, isNew, errorOf, set }: FieldsProps) {
  const kind = kindOf(values.type);
  return (
    <Stack>
      {isNew && <TypeField values={values} set={set} />}
      <TextInput
        label="Name"
        description="Purpose, such as phone or nightly job"
        error={errorOf("name")}
        value={values.name}
        onChange={({ currentTarget: { value } }) => set({ name: value })}
      />
      {kind.identifier !== null && (
        <TextInput
          label={kind.identifier.label}
          description={kind.identifier.text}
          error={errorOf("identifier")}
          autoComplete="off"
          value={values.identifier}
          onChange={({ currentTarget: { value } }) => set({ identifier: value })}
        />
      )}
      {kind.algorithms.length > 0 && (
        <Select
          label="Algorithm"
          description="HS and hmac use a shared secret, the others a key pair"
          data={[...kind.algorithms]}
          placeholder={kind.algorithms[0] ?? ""}
          clearable
          error={errorOf("algorithm")}
          value={values.algorithm}
          onChange={(algorithm) => set({ algorithm })}
        />
      )}
      <SecretFields values={values} isNew={isNew} errorOf={errorOf} set={set} />
      <ExpiryField
        value={values.expires_at}
        error={errorOf("expires_at")}
        onChange={(at) => set({ expires_at: at })}
      />
      <Switch
        label="Enabled"
        description="Off: the gateway rejects it"
        checked={values.enabled}
        onChange={({ currentTarget: { checked } }) => set({ enabled: checked })}
      />
    </Stack>
  );
}

function TypeField({ values, set }: Pick<FieldsProps, "values" | "set">) {
  return (
    <Radio.Group
      label="Type"
      value={values.type}
      onChange={(type) => set({ type, algorithm: null, identifier: "" })}
    >
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" mt={4}>
        {kinds.map(({ type, title, text }) => (
          <Radio.Card key={type} value={type} p="xs" className="choice" aria-label={title}>
            <Text size="sm" fw={600}>
              {title}
            </Text>
            <Text size="xs" c="dimmed">
              {text}
            </Text>
          </Radio.Card>
        ))}
      </SimpleGrid>
    </Radio.Group>
  );
}

function SecretFields({ values, isNew, errorOf, set }: FieldsProps) {
  const { secretWord } = kindOf(values.type);
  if (!isShared(values.algorithm))
    return (
      <Textarea
        label="Public key"
        description="PEM. The client keeps the private key"
        placeholder="-----BEGIN PUBLIC KEY-----"
        autosize
        minRows={4}
        required
        error={errorOf("public_key")}
        value={values.public_key}
        onChange={({ currentTarget: { value } }) => set({ public_key: value })}
      />
    );
  if (!isNew) return null;
  return (
    <Stack gap={6}>
      <SegmentedControl
        aria-label={`Source of the ${secretWord}`}
        value={values.isOwn ? "own" : "made"}
        onChange={(next) => set({ isOwn: next === "own", secret: "" })}
        data={[
          { value: "made", label: "Generate" },
          { value: "own", label: "Enter manually" },
        ]}
      />
      {values.isOwn ? (
        <PasswordInput
          label={`Your ${secretWord}`}
          autoComplete="new-password"
          required
          error={errorOf("secret")}
          value={values.secret}
          onChange={({ currentTarget: { value } }) => set({ secret: value })}
        />
      ) : (
        <HelpText>The {secretWord} is shown once, after creation.</HelpText>
      )}
    </Stack>
  );
}
