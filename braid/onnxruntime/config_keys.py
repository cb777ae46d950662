"""The keys of configurations that ONNX Runtime knows, by the part before the last dot.

They steer its kernels, its threads and its memory. braid takes all without effect but those that
are named below.
"""

from collections.abc import Mapping

_SESSION: Mapping[str, str] = {
    "session": "allow_released_opsets_only collect_node_memory_stats_to_file "
    "disable_aot_function_inlining disable_cpu_ep_fallback disable_double_qdq_remover "
    "disable_model_compile disable_prepacking disable_qdq_constant_folding disable_quant_qdq "
    "dynamic_block_base "
    "enable_cpu_mem_arena enable_dq_matmulnbits_fusion enable_mem_pattern enable_quant_qdq "
    "enable_quant_qdq_cleanup force_spinning_stop graph_optimizations_loop_level "
    "intra_op_thread_affinities load_model_format model_external_initializers_file_folder_path "
    "qdq_matmulnbits_accuracy_level qdq_matmulnbits_block_size qdqisint8allowed "
    "record_ep_graph_assignment_info save_model_format set_denormal_as_zero "
    "strict_shape_type_inference use_device_allocator_for_initializers use_env_allocators "
    "use_ort_model_bytes_directly use_ort_model_bytes_for_initializers",
    "session.inter_op": "allow_spinning spin_backoff_max spin_duration_us",
    "session.intra_op": "allow_spinning spin_backoff_max spin_duration_us",
    "session.prepack": "enable_parallel",
    "optimization": "constant_folding_max_output_size_in_bytes disable_specified_optimizers "
    "enable_cast_chain_elimination enable_gelu_approximation minimal_build_optimizations",
    "ep": "context_embed_mode context_enable context_file_path context_node_name_prefix",
    "mlas": "disable_kleidiai enable_gemm_fastmath_arm64_bfloat16 use_lut_gemm",
}
_RUN: Mapping[str, str] = {
    "memory": "enable_memory_arena_shrinkage",
    "qnn": "htp_perf_mode htp_perf_mode_post_run lora_config rpc_control_latency",
    "": "disable_synchronize_execution_providers gpu_graph_id",
}

EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
"""The one key of a session with an effect: where the weights of a model in other files are."""
SHRINK = "memory.enable_memory_arena_shrinkage"
"""The one key of a run with an effect: memory is given back after it."""


def _joined(keys: Mapping[str, str]) -> frozenset[str]:
    return frozenset(
        f"{area}.{name}" if area else name for area, names in keys.items() for name in names.split()
    )


SESSION_KEYS = _joined(_SESSION)
RUN_KEYS = _joined(_RUN)
