"""The passes of this package by name, one line each, sorted; loaded when they are used."""

PASSES: dict[str, str] = {
    "apply-hls-schedule": "braid.lowering.fpga.apply_hls_schedule:ApplyHlsSchedulePass",
    "attach-streams": "braid.lowering.npu.attach_streams:AttachStreamsPass",
    "convert-braid-to-hls": "braid.lowering.fpga.convert_braid_to_hls:ConvertBraidToHlsPass",
    "convert-braid-to-linalg": (
        "braid.lowering.common.convert_braid_to_linalg:ConvertBraidToLinalgPass"
    ),
    "lower-floats-to-cpp": "braid.lowering.fpga.lower_floats_to_cpp:LowerFloatsToCppPass",
    "lower-hls-to-cpp": "braid.lowering.fpga.lower_hls_to_cpp:LowerHlsToCppPass",
    "lower-hls-to-verilog": "braid.lowering.fpga.lower_hls_to_verilog:LowerHlsToVerilogPass",
    "lower-program": "braid.lowering.host.lower_program:LowerProgramPass",
    "lower-to-instructions": "braid.lowering.npu.lower_to_instructions:LowerToInstructionsPass",
    "materialize-layouts": "braid.lowering.common.materialize_layouts:MaterializeLayoutsPass",
    "select-channel-depths": "braid.lowering.fpga.select_channel_depths:SelectChannelDepthsPass",
    "select-hls-schedule": "braid.lowering.fpga.select_hls_schedule:SelectHlsSchedulePass",
    "select-stream-schedules": (
        "braid.lowering.npu.select_stream_schedules:SelectStreamSchedulesPass"
    ),
    "select-stream-splits": "braid.lowering.npu.select_stream_splits:SelectStreamSplitsPass",
}
"""Name of the pass -> `module:class`."""
