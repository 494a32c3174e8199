CREATE TABLE "sluice"."chunk" (
	"body_id" uuid NOT NULL,
	"part" integer NOT NULL,
	"bytes" "bytea" NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "chunk_body_id_part_pk" PRIMARY KEY("body_id","part")
);

CREATE TABLE "sluice"."entry" (
	"position" bigint PRIMARY KEY NOT NULL,
	"entry_id" uuid NOT NULL,
	"node" text NOT NULL,
	"format" integer NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"body" "bytea",
	"mac" "bytea" NOT NULL,
	CONSTRAINT "entry_entry_id_unique" UNIQUE("entry_id")
);

CREATE TABLE "sluice"."head" (
	"one" smallint PRIMARY KEY DEFAULT 1 NOT NULL,
	"position" bigint NOT NULL
);

CREATE TABLE "sluice"."meta" (
	"key" text PRIMARY KEY NOT NULL,
	"value" text NOT NULL
);

CREATE TABLE "sluice"."node" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"url" text NOT NULL,
	"version" text NOT NULL,
	"format_max" integer NOT NULL,
	"stored" bigint NOT NULL,
	"served" bigint NOT NULL,
	"seen" timestamp with time zone DEFAULT now() NOT NULL,
	"state" text NOT NULL,
	"error" text DEFAULT '' NOT NULL,
	"draining" boolean DEFAULT false NOT NULL,
	"clock_offset_ms" bigint DEFAULT 0 NOT NULL,
	"mac" "bytea" NOT NULL,
	CONSTRAINT "node_name_unique" UNIQUE("name")
);

CREATE TABLE "sluice"."whole" (
	"position" bigint PRIMARY KEY NOT NULL,
	"entry_id" uuid NOT NULL,
	"body_id" uuid NOT NULL,
	"node" text NOT NULL,
	"format" integer NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"mac" "bytea" NOT NULL,
	CONSTRAINT "whole_entry_id_unique" UNIQUE("entry_id")
);
