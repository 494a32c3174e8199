CREATE TABLE `stream_routes` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`name` text NOT NULL
);

CREATE UNIQUE INDEX `stream_routes_id_unique` ON `stream_routes` (`id`);
CREATE UNIQUE INDEX `stream_routes_name_unique` ON `stream_routes` (`name`);